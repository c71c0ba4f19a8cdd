#!/bin/sh
# coming_from.sh PAGE.md OUTPUT.cpp
# Makes a program of the cells of docs/coming-from.md: for each row of a table with a column "keyfold" behind another, a
# function with the code of that cell. The first ```cpp block of the page stands in front of all of them, the second one
# at the beginning of each. A cell that begins with a dot is part of a merge.
set -eu
page=$1 output=$2
fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT

awk '
  /^```/ {
    inside = !inside
    if (inside) ++blocks
    if (!inside && blocks == 1) {
      print "#include \"coming_from.hpp\"\n\n" block[1]
      print "static Orders five_versions() { return make_five_versions<Orders>(); }"
      print "static std::vector<Order> some_orders() { return make_some_orders<Order>(); }\n"
    }
    next
  }
  inside { block[blocks] = block[blocks] $0 "\n"; next }
  /^\| .* \| keyfold \|$/ { cells = 1; next }
  !/^\|/ { cells = 0; next }
  cells && !/^\|---/ {
    cell = $0
    sub(/ \|$/, "", cell)
    while ((at = index(cell, " | ")) > 0) cell = substr(cell, at + 3)
    count = split(cell, pieces, "`")
    if (count < 3) next
    if (pieces[2] ~ /^\./) {
      pieces[2] = "orders.merge(rows)" pieces[2]
      if (pieces[2] !~ /\.execute\(\)/) pieces[2] = pieces[2] ".execute()"
    }
    printf "static void line_%d() {\n%s#line %d \"%s\"\n", FNR, block[2], FNR, FILENAME
    for (i = 2; i < count; i += 2) printf "  %s;\n", pieces[i]
    # What a cell does not use is no mistake of it.
    print "  static_cast<void>(corrections), static_cast<void>(noon), static_cast<void>(options);\n}"
    ++functions
    calls = calls "  run(\"" FILENAME ":" FNR "\", line_" FNR ");\n"
  }
  END {
    printf "\nint main() {\n%s  return failures == 0 && %d > 50 ? 0 : 1;\n}\n", calls, functions
  }
' "$page" >"$fresh"
cmp -s "$fresh" "$output" || cp "$fresh" "$output"
