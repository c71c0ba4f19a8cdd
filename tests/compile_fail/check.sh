#!/bin/sh
# check.sh pair|mistake|twin FILE COMPILER [FLAG...]
#
# Checks a mistake and its twin, or only one of them.
# FILE holds a mistake and its twin: `#ifdef KEYFOLD_MISTAKE ... #else ... #endif`. Its first line is
#     // expect: keyfold: the sentence that the first error must be
# and lines `// mention: text` may follow: each text must stand somewhere in the diagnostics.
# The twin must compile without any output; the mistake must not compile, its first line with `error:` must be
# a failed static assertion with the sentence.
set -u
part=$1 file=$2 compiler=$3
shift 3
LC_ALL=C
export LC_ALL

fail() {
  printf '%s (%s): %s\n' "$file" "$compiler" "$1"
  [ -z "${output-}" ] || printf '%s\n' "$output" | head -n 60
  exit 1
}

compile() {
  output=$("$compiler" -std=c++20 -fsyntax-only -fdiagnostics-color=never "$@" "$file" 2>&1)
}

if [ "$part" != mistake ]; then
  compile "$@" || fail 'the twin does not compile'
  [ -z "$output" ] || fail 'the twin compiles, but not silently'
fi
[ "$part" != twin ] || exit 0

expected=$(sed -n '1s|^// expect: ||p' "$file")
case $expected in
  'keyfold: '?*) ;;
  *) fail 'the first line must be "// expect: keyfold: ..."' ;;
esac

compile "$@" -DKEYFOLD_MISTAKE && fail 'the mistake compiles'

# g++       error: static assertion failed: keyfold: ...
# clang 14  error: static_assert failed due to requirement '...' "keyfold: ..."
# clang 19  error: static assertion failed due to requirement '...': keyfold: ...
first=$(printf '%s\n' "$output" | grep -m 1 'error:')
said=$(printf '%s\n' "$first" | sed -n -E \
  "s/^.*error: static(_assert| assertion) failed( due to requirement '.*')?:? \"?(keyfold: .*)\$/\\3/p" |
  sed 's/\\"/"/g')  # clang 14 prints the literal as it is written
case $said in
  "$expected"*) ;;
  *) fail "the first error is not the expected sentence
  expected: $expected
  found:    $first" ;;
esac

sed -n 's|^// mention: ||p' "$file" | {
  while IFS= read -r text; do
    printf '%s\n' "$output" | grep -qF -e "$text" || { printf 'not mentioned: %s\n' "$text"; exit 1; }
  done
} || fail 'the diagnostics lack a mention'
