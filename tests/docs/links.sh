#!/bin/sh
# links.sh ROOT
# Every relative link of the Markdown pages below ROOT leads to a file, and to a heading where it names one.
set -eu
cd "$1"
find . -name '*.md' -not -path './build*' -not -path './.git/*' | sort | xargs awk '
  function anchor_of(heading) {
    heading = tolower(heading)
    gsub(/\[|\]\([^)]*\)/, "", heading)
    gsub(/[^a-z0-9 _-]/, "", heading)
    gsub(/ /, "-", heading)
    return heading
  }
  function resolved(file, target,   path, parts, n, i, m, out) {
    path = file
    sub(/[^\/]*$/, "", path)
    n = split(path target, parts, "/")
    m = 0
    for (i = 1; i <= n; ++i) {
      if (parts[i] == "." || parts[i] == "") continue
      if (parts[i] == "..") { if (m > 0) --m; continue }
      out[++m] = parts[i]
    }
    path = "."
    for (i = 1; i <= m; ++i) path = path "/" out[i]
    return path
  }
  FNR == 1 { code = 0 }
  /^ *```/ { code = !code; next }
  code { next }
  /^#+ / { heading = $0; sub(/^#+ /, "", heading); anchors[FILENAME "#" anchor_of(heading)] = 1 }
  {
    line = $0
    gsub(/`[^`]*`/, "", line)
    while (match(line, /\]\([^)]+\)/)) {
      target = substr(line, RSTART + 2, RLENGTH - 3)
      line = substr(line, RSTART + RLENGTH)
      if (target ~ /^[a-z]+:/) continue
      links[++count] = target; from[count] = FILENAME; at[count] = FNR
    }
  }
  END {
    for (i = 1; i <= count; ++i) {
      split(links[i], parts, "#")
      file = substr(links[i], 1, 1) == "#" ? from[i] : resolved(from[i], parts[1])
      if (system("test -e \"" file "\"") != 0) { print from[i] ":" at[i] ": there is no " links[i]; failed = 1; continue }
      if (links[i] ~ /#/ && !((file "#" parts[2]) in anchors)) { print from[i] ":" at[i] ": no heading is called " links[i]; failed = 1 }
    }
    if (count == 0) { print "no link was found"; failed = 1 }
    exit failed
  }
'
