#!/bin/sh
# extract.sh DIRECTORY FILE.md...
# Writes each ```cpp block whose first line is `// run: name` to DIRECTORY/name.cpp, and the next ```text block, when it
# comes before the next ```cpp block, to DIRECTORY/name.expected. Files that would not change are left alone; files
# without a block any more are removed.
set -eu
directory=$1
shift
mkdir -p "$directory"
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT

awk -v directory="$fresh" '
  /^```/ && inside {              # the end of a block
    if (out != "") { close(out); if (inside == "text") name = "" }
    inside = ""; out = ""
    next
  }
  /^```cpp/  { inside = "cpp"; first = 1; name = ""; next }
  /^```text/ { inside = "text"; if (name != "") { out = directory "/" name ".expected"; printf "" > out } next }
  /^```/     { inside = "other"; next }
  inside == "cpp" && first {
    first = 0
    if ($0 ~ /^\/\/ run: [a-z0-9_]+$/) {
      name = substr($0, 9)
      out = directory "/" name ".cpp"
      if (name in seen) { print FILENAME ": " name " is already in " seen[name] > "/dev/stderr"; exit 1 }
      seen[name] = FILENAME
      print "// " FILENAME ":" FNR >> out
    }
  }
  out != "" { print > out }
' "$@"

for file in "$directory"/*; do
  [ ! -f "$file" ] || [ -f "$fresh/${file##*/}" ] || rm "$file"
done
for file in "$fresh"/*; do
  [ -f "$file" ] || continue
  cmp -s "$file" "$directory/${file##*/}" || cp "$file" "$directory/"
done
