#!/bin/sh
# check.sh FILE COMPILER [FLAG...]
#
# The compiler must warn of a discarded value on the lines of FILE that end in `// discarded`, and on no other.
# Lines `// mention: text` may stand in FILE: each text must be part of a warning.
set -u
file=$1 compiler=$2
shift 2
LC_ALL=C
export LC_ALL

fail() {
  printf '%s (%s): %s\n%s\n' "$file" "$compiler" "$1" "$output"
  exit 1
}

output=$("$compiler" -std=c++20 -fsyntax-only -fdiagnostics-color=never "$@" "$file" 2>&1) || fail 'does not compile'
warned=$(printf '%s\n' "$output" | sed -n 's/^[^:]*:\([0-9]*\):[0-9]*: warning: ignoring return.*/\1/p')
marked=$(sed -n '/ \/\/ discarded$/=' "$file")
[ -n "$marked" ] && [ "$warned" = "$marked" ] ||
  fail "warned of lines $(echo $warned), should have been of $(echo $marked)"

sed -n 's|^// mention: ||p' "$file" | {
  while IFS= read -r text; do
    printf '%s\n' "$output" | grep 'warning:' | grep -qF -e "$text" || { printf 'not mentioned: %s\n' "$text"; exit 1; }
  done
} || fail 'the warnings lack a mention'
