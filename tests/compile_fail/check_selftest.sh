#!/bin/sh
# check_selftest.sh CHECK COMPILER
# Shows that CHECK accepts a good pair and refuses each kind of bad one.
set -u
check=$1 compiler=$2
directory=$(mktemp -d) || exit 1
trap 'rm -rf "$directory"' EXIT
failures=0

# verdict NAME accepted|refused: runs CHECK on the file read from standard input.
verdict() {
  cat >"$directory/$1.cpp"
  if sh "$check" pair "$directory/$1.cpp" "$compiler" -Wall >"$directory/log" 2>&1; then found=accepted; else found=refused; fi
  [ "$found" = "$2" ] && return
  printf '%s: %s, should be %s\n' "$1" "$found" "$2"
  cat "$directory/log"
  failures=$((failures + 1))
}

verdict good accepted <<'END'
// expect: keyfold: a row needs a key (say "Key")
// mention: NoKeyHere
template <class NoKeyHere> struct Table { static_assert(sizeof(NoKeyHere) > 1, "keyfold: a row needs a key (say \"Key\")"); };
#ifdef KEYFOLD_MISTAKE
Table<char> table;
#else
Table<int> table;
#endif
END
verdict no_condition accepted <<'END'
// expect: keyfold: no clause
#ifdef KEYFOLD_MISTAKE
static_assert(false, "keyfold: no clause");
#endif
END
verdict mistake_compiles refused <<'END'
// expect: keyfold: a sentence
int x;
END
verdict twin_fails refused <<'END'
// expect: keyfold: a sentence
static_assert(sizeof(int) == 1, "keyfold: a sentence");
END
verdict twin_warns refused <<'END'
// expect: keyfold: a sentence
#ifdef KEYFOLD_MISTAKE
static_assert(sizeof(int) == 1, "keyfold: a sentence");
#else
inline void f() { int unused; }
#endif
END
verdict other_sentence refused <<'END'
// expect: keyfold: a sentence
#ifdef KEYFOLD_MISTAKE
static_assert(sizeof(int) == 1, "keyfold: another sentence");
#endif
END
verdict sentence_comes_second refused <<'END'
// expect: keyfold: a sentence
#ifdef KEYFOLD_MISTAKE
int y = undeclared;
static_assert(sizeof(int) == 1, "keyfold: a sentence");
#endif
END
verdict sentence_in_the_middle refused <<'END'
// expect: keyfold: a sentence
#ifdef KEYFOLD_MISTAKE
static_assert(sizeof(int) == 1, "oh dear, keyfold: a sentence");
#endif
END
verdict missing_mention refused <<'END'
// expect: keyfold: a sentence
// mention: CustomerName
#ifdef KEYFOLD_MISTAKE
static_assert(sizeof(int) == 1, "keyfold: a sentence");
#endif
END
verdict no_expectation refused <<'END'
#ifdef KEYFOLD_MISTAKE
static_assert(sizeof(int) == 1, "keyfold: a sentence");
#endif
END

[ "$failures" -eq 0 ]
