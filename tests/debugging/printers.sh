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
  notes notes_before notes_history last_note many_history one_of_many expired tagged dangling empty moved_from '*unborn'; do
  set -- "$@" -ex "printf \"$variable: \"" -ex "output $variable" -ex 'echo \n'
done
"$gdb" "$@" "$program" 2>&1 | sed -n '/^orders: /,$p' >"$actual"
diff -u printers.expected "$actual"

# What docs/debugging.md shows of it.
sed -n -e '/^(gdb) print /{s///;h;}' -e '/^\$[0-9]* = /{s///;H;x;s/\n/: /p;}' ../../docs/debugging.md >"$actual"
test -s "$actual"
if grep -Fvx -f printers.expected "$actual"; then
  echo 'docs/debugging.md shows what gdb does not print'
  exit 1
fi
