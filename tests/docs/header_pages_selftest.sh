#!/bin/sh
# header_pages_selftest.sh HEADER_PAGES
# Shows what HEADER_PAGES misses.
set -eu
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
mkdir "$directory/headers" "$directory/pages"
touch "$directory/headers/thing.hpp"
echo "# Headers: [thing](a_thing.md)" >"$directory/pages/headers.md"
check() { sh "$1" "$directory/headers" "$directory/pages" >"$directory/log"; }
refuses() {
  if check "$1"; then echo "taken: $2"; exit 1; fi
  grep -q "$2" "$directory/log" || { cat "$directory/log"; exit 1; }
}

refuses "$1" "one page of docs/ must begin with '# thing.hpp'; found: none"

page() {
  cat >"$directory/pages/a_thing.md" <<'END'
# thing.hpp

What it is for.

```cpp
class Thing;
```

## Contract

- One.

## Complexity

O(1).

## Exceptions

None.

## Threads

A value.

## Example

```cpp
Thing thing;
```
```text
output
```
END
}
page
check "$1"

sed -i 's/^## Threads/## Thread/' "$directory/pages/a_thing.md"
refuses "$1" 'no section "Threads"'
page; sed -i 's/^O(1).$//' "$directory/pages/a_thing.md"
refuses "$1" 'the section "Complexity" is empty'
page; sed -i 's/^```text/```sh/' "$directory/pages/a_thing.md"
refuses "$1" 'no example with its output'
page; sed -i 's/^What it is for.//' "$directory/pages/a_thing.md"
refuses "$1" 'no sentence says what the header is for'
page; sed -i 's/^class Thing;/template <> class Thing;/' "$directory/pages/a_thing.md"
check "$1"
page; echo "# Headers" >"$directory/pages/headers.md"
refuses "$1" 'docs/headers.md does not list it'
page; cp "$directory/pages/a_thing.md" "$directory/pages/b_thing.md"
refuses "$1" 'one page of docs/ must begin'
