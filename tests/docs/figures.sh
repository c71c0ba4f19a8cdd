#!/bin/sh
# figures.sh PAGES
# Every block of figures in the pages of the directory PAGES, from `<!-- figures: name -->` to `<!-- end -->`, has
# figures in it: a line of text, or a table with a row below its heading.
set -eu
awk '
  function fail(line, message) { print FILENAME ":" line ": " message; failed = 1 }
  function close_block() {
    if (!filled) fail(begin, "there are no figures of " name)
    name = ""
  }
  FNR == 1 && name != "" { print page ": the figures of " name " have no end"; failed = 1; name = "" }
  { page = FILENAME }
  /^<!-- figures: .* -->$/ {
    if (name != "") fail(begin, "the figures of " name " have no end")
    name = substr($0, 15, length($0) - 18)
    begin = FNR
    rows = filled = 0
    ++count
    next
  }
  /^<!-- end -->$/ && name != "" { close_block(); next }
  name != "" && /[^ ]/ {
    rows = /^\|/ ? rows + 1 : 0
    if (rows == 0 || rows > 2) filled = 1
  }
  END {
    if (name != "") { print page ": the figures of " name " have no end"; failed = 1 }
    if (count == 0) { print "no figures were found"; failed = 1 }
    exit failed
  }
' "$1"/*.md
