#!/bin/sh
# extract_selftest.sh EXTRACT
# Shows which blocks of a page EXTRACT takes and which it leaves.
set -eu
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

cat >"$directory/page.md" <<'END'
A program and its output:
```cpp
// run: one
int main() {}
```
Some words.
```text
1
2
```
```text
not an output of anything
```
A fragment:
```cpp
int fragment;
```
```text
output of a fragment
```
A program without an output, then a shell block:
```cpp
// run: two
int main() { return 0; }
```
```sh
ls
```
END
extract() { sh "$1" "$directory/out" "$directory/page.md"; }

extract "$1"
[ "$(cd "$directory/out" && echo *)" = "one.cpp one.expected two.cpp" ]
[ "$(cat "$directory/out/one.expected")" = "1
2" ]
[ "$(tail -n 1 "$directory/out/one.cpp")" = "int main() {}" ]
[ "$(tail -n 1 "$directory/out/two.cpp")" = "int main() { return 0; }" ]

sed -i 's/^\/\/ run: two/\/\/ run: three/' "$directory/page.md"
extract "$1"
[ "$(cd "$directory/out" && echo *)" = "one.cpp one.expected three.cpp" ]

sed -i 's/^\/\/ run: three/\/\/ run: one/' "$directory/page.md"
if extract "$1" 2>"$directory/log"; then echo 'two programs of one name are taken'; exit 1; fi
grep -q 'one is already in' "$directory/log"

cat >"$directory/page.md" <<'END'
```cpp
// part: whole
std::puts("one");
```
```text
one
```
END
cat >"$directory/other.md" <<'END'
```cpp
// begin: whole
#include <cstdio>
```
Two parts in one function:
```cpp
// part: whole
const char* text = "two";
```
```cpp
// part: whole
std::puts(text);
```
```text
two
```
END
both() { sh "$1" "$directory/out" "$directory/page.md" "$directory/other.md"; }
both "$1"
[ "$(cd "$directory/out" && echo *)" = "whole.cpp whole.expected" ]
[ "$(cat "$directory/out/whole.expected")" = "one
two" ]
[ "$(grep -c '^static void page_' "$directory/out/whole.cpp")" = 2 ]
[ "$(grep -c '  page_.();' "$directory/out/whole.cpp")" = 2 ]
grep -q "^#line 8 .*other.md" "$directory/out/whole.cpp"

if extract "$1" 2>"$directory/log"; then echo 'parts without a beginning are taken'; exit 1; fi
grep -q 'no block begins the program of the parts whole' "$directory/log"
