#!/bin/sh
# figures_selftest.sh FIGURES
# Shows which pages FIGURES takes and which it refuses.
set -eu
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
page() { printf '%b' "$1" >"$directory/page.md"; }
check() { sh "$figures" "$directory" >"$directory/log"; }
takes() {
  page "$1"
  check || { echo "refused: $1"; cat "$directory/log"; exit 1; }
}
refuses() {
  page "$1"
  if check; then echo "taken: $1"; exit 1; fi
  grep -q "page.md$2" "$directory/log" || { cat "$directory/log"; exit 1; }
}
figures=$1
begin='# A page\n<!-- figures: speed -->\n' end='<!-- end -->\n' heading='| a | b |\n| --- | --: |\n'
printf '# Another\n<!-- figures: one -->\n2.5\n<!-- end -->\n' >"$directory/another.md"
takes ''
takes "${begin}g++ 12, 2 cores\n$end"
takes "$begin$heading| x | 1 |\n$end"
takes "$begin$heading| x | 1 |\n$end<!-- figures: more -->\n1\n$end"
refuses "$begin$end" ':2: there are no figures of speed'
refuses "$begin\n$end" ':2: there are no figures of speed'
refuses "$begin$heading$end" ':2: there are no figures of speed'
refuses "${begin}1\n$end$begin$end" ':6: there are no figures of speed'
refuses "${begin}1\n" ': the figures of speed have no end'
refuses "${begin}1\n${begin}1\n$end" ':2: the figures of speed have no end'
printf '' >"$directory/another.md"
page ''
if check; then echo 'taken: pages without figures'; exit 1; fi
