#!/bin/sh
# expect_output.sh EXPECTED COMMAND [ARGUMENT...]
# Runs COMMAND; succeeds when it succeeds and its standard output equals the file EXPECTED byte for byte.
set -u
expected=$1
shift
actual=$(mktemp) || exit 1
trap 'rm -f "$actual"' EXIT
"$@" >"$actual"
status=$?
if [ $status -ne 0 ]; then
  cat "$actual"
  printf '%s: exit status %s\n' "$1" "$status"
  exit 1
fi
cmp -s "$expected" "$actual" && exit 0
diff -u "$expected" "$actual"
exit 1
