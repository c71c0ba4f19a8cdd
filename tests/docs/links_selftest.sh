#!/bin/sh
# links_selftest.sh LINKS
# Shows which links LINKS takes and which it refuses.
set -eu
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
mkdir "$directory/docs"
cat >"$directory/README.md" <<'END'
# A title
[a page](docs/page.md) and [a part](docs/page.md#the-2nd-part-of-it), [here](#a-title), [elsewhere](https://example.org/x)
END
cat >"$directory/docs/page.md" <<'END'
## The 2nd part of `it`
[back](../README.md), not a link: `[x](y.md)`
```text
## Not a heading, [not a link](z.md)
```
END
check() { sh "$1" "$directory" >"$directory/log"; }
refuses() {
  if check "$1"; then echo "taken: $2"; exit 1; fi
  grep -q "$2" "$directory/log" || { cat "$directory/log"; exit 1; }
}
check "$1"
echo '[lost](../LOST.md)' >>"$directory/docs/page.md"
refuses "$1" 'docs/page.md:6: there is no ../LOST.md'
touch "$directory/LOST.md"
check "$1"
echo '[lost](docs/page.md#not-a-heading-not-a-linkzmd)' >>"$directory/README.md"
refuses "$1" 'README.md:3: no heading is called docs/page.md#not-a-heading-not-a-linkzmd'
