#!/bin/sh
# semantics.sh PAGE.md OUTPUT.cpp
# Turns the examples of docs/merge-semantics.md into a program that runs them. An example is a ```cpp block of
#     // t: rows of the table (t, u or h)
#     // s: rows of the source
#     one statement
#     // t: rows and counts          or: // throws Error, member value, ...
set -eu
page=$1 output=$2
fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT

awk '
  BEGIN { print "#include \"semantics.hpp\"\n"; print "int main() {" }
  /^```cpp/ { inside = 1; line = 0; next }
  /^```/ {
    if (example) {
      sub(/^\/\/ /, "", last)
      printf "}, \"%s\");\n", last
      ++count
    }
    inside = example = 0
    next
  }
  inside && ++line == 1 && /^\/\/ [tuh]:/ {
    example = 1
    table = substr($0, 4, 1)
    before = substr($0, 6)
    next
  }
  example && line == 2 {
    printf "  example<%s>(%d, \"%s\", \"%s\", []([[maybe_unused]] %s& %s, [[maybe_unused]] const std::vector<Row>& s) {\n", \
      toupper(table), NR - 1, before, substr($0, 6), toupper(table), table
    next
  }
  example && line == 3 { last = "return " $0; next }
  example { print last; last = $0 }
  END { printf "  return finish(%d);\n}\n", count }
' "$page" >"$fresh"
cmp -s "$fresh" "$output" || cp "$fresh" "$output"
