#!/bin/sh
# header_pages.sh HEADERS PAGES
# Every header of the directory HEADERS has one page in the directory PAGES, which begins with its name, is listed in
# headers.md, and has the sections of all such pages: what it is for, what is in it, and then those below, with the output
# of the example.
set -eu
headers=$1 pages=$2
failed=0
for header in "$headers"/*.hpp; do
  name=${header##*/}
  page=$(awk -v title="# $name" 'FNR == 1 && $0 == title { print FILENAME }' "$pages"/*.md)
  if [ "$(printf '%s' "$page" | grep -c .)" != 1 ]; then
    echo "$name: one page of docs/ must begin with '# $name'; found: ${page:-none}"
    failed=1
    continue
  fi
  grep -qF "(${page##*/})" "$pages/headers.md" || { echo "$page: docs/headers.md does not list it"; failed=1; }
  awk -v page="$page" '
    function missing(what) { print page ": " what; failed = 1 }
    BEGIN { count = split("Contract Complexity Exceptions Threads Example", wanted, " ") }
    /^```/ { inside = !inside; if (inside) { block[section] = block[section] $0; filled[section] = 1 }; next }
    inside || NR == 1 { next }
    /^## / {
      section = substr($0, 4)
      if (next_wanted < count && section == wanted[next_wanted + 1]) ++next_wanted
      next
    }
    /[^ ]/ { filled[section] = 1; if (section == "") purpose = 1 }
    END {
      if (!purpose) missing("no sentence says what the header is for")
      if (block[""] !~ /```cpp/) missing("no block says what is in the header")
      if (next_wanted < count) missing("no section \"" wanted[next_wanted + 1] "\" after those before it")
      for (i = 1; i <= count; ++i) if (!filled[wanted[i]]) missing("the section \"" wanted[i] "\" is empty")
      if (block["Example"] !~ /```cpp/ || block["Example"] !~ /```text/) missing("no example with its output")
      exit failed
    }
  ' "$page" || failed=1
done
exit $failed
