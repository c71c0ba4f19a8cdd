#!/bin/sh
# printers.sh GDB PROGRAM
# Runs PROGRAM in gdb up to stop_here(), prints the variables that are there, and compares with printers.expected.
set -eu
gdb=$1
program=$2
actual=$(mktemp)
trap 'rm -f "$actual"' EXIT

set -- -nx -batch -iex "add-auto-load-safe-path $program" -ex 'set width 0' -ex 'set python print-stack full' \
  -ex 'break stop_here' -ex run -ex up
for variable in orders first second unchanged result history merge rekey changes change metrics feed begin \
  notes notes_before notes_history last_note expired tagged dangling empty moved_from; do
  set -- "$@" -ex "printf \"$variable: \"" -ex "output $variable" -ex 'echo \n'
done
"$gdb" "$@" "$program" 2>&1 | sed -n '/^orders: /,$p' >"$actual"
diff -u printers.expected "$actual"
