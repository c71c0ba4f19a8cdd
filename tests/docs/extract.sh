#!/bin/sh
# extract.sh DIRECTORY FILE.md...
# Makes the programs of the pages, each DIRECTORY/name.cpp, and what they are to print, DIRECTORY/name.expected. The
# first line of a ```cpp block says what it is:
#     // run: name      a whole program
#     // begin: name    the beginning of a program that is made of parts
#     // part: name     statements of that program: one function for each page, which has the parts in their order
# The next ```text block, when it comes before the next ```cpp block, is its output. Files that would not change are left
# alone; files without a block any more are removed.
set -eu
directory=$1
shift
mkdir -p "$directory"
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT

awk -v directory="$fresh" '
  function fail(message) { print FILENAME ":" FNR ": " message > "/dev/stderr"; failed = 1; exit 1 }
  function program(name, kind) {
    if (name in seen) fail(name " is already in " seen[name])
    seen[name] = FILENAME
    kinds[name] = kind
  }
  function begin_part(name) {
    if (page[name] != FILENAME) {
      if (page[name] != "") bodies[name] = bodies[name] "}\n"
      ++pages[name]
      page[name] = FILENAME
      bodies[name] = bodies[name] "static void page_" pages[name] "() {\n"
    }
    bodies[name] = bodies[name] "#line " FNR + 1 " \"" FILENAME "\"\n"
  }
  /^```/ && inside {              # the end of a block
    if (inside == "text") name = ""
    inside = ""
    next
  }
  /^```cpp/  { inside = "cpp"; first = 1; name = ""; next }
  /^```text/ { inside = "text"; if (name != "") printed[name] = 1; next }
  /^```/     { inside = "other"; next }
  inside == "cpp" && first {
    first = 0
    if ($0 !~ /^\/\/ (run|begin|part): [a-z0-9_]+$/) next
    kind = $2
    name = $3
    if (kind == "part:") { begin_part(name); next }
    program(name, kind)
    sources[name] = "// " FILENAME ":" FNR "\n"
    if (kind == "run:") sources[name] = sources[name] $0 "\n"
    next
  }
  name != "" && inside == "text" { expected[name] = expected[name] $0 "\n" }
  name != "" && inside == "cpp" {
    if (kind == "part:") bodies[name] = bodies[name] $0 "\n"
    else sources[name] = sources[name] $0 "\n"
  }
  END {
    if (failed) exit 1
    for (name in bodies) if (kinds[name] != "begin:") fail("no block begins the program of the parts " name)
    for (name in sources) {
      text = sources[name]
      if (kinds[name] == "begin:") {
        if (!(name in bodies)) fail(name " is begun and has no part")
        text = text "\n" bodies[name] "}\n\nint main() {\n"
        for (i = 1; i <= pages[name]; ++i) text = text "  page_" i "();\n"
        text = text "}\n"
      }
      printf "%s", text > (directory "/" name ".cpp")
      if (name in printed) printf "%s", expected[name] > (directory "/" name ".expected")
    }
  }
' "$@"

for file in "$directory"/*; do
  [ ! -f "$file" ] || [ -f "$fresh/${file##*/}" ] || rm "$file"
done
for file in "$fresh"/*; do
  [ -f "$file" ] || continue
  cmp -s "$file" "$directory/${file##*/}" || cp "$file" "$directory/"
done
