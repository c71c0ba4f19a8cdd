// The library a second time, beside the test's own inclusion of it.
#if __has_include(<keyfold/keyfold.hpp>)
#include <keyfold/keyfold.hpp>
#endif
#if __has_include(<keyfold/print.hpp>)
#include <keyfold/print.hpp>
#endif
#if __has_include(<keyfold/csv.hpp>)
#include <keyfold/csv.hpp>
#endif
