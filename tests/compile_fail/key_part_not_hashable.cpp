// expect: keyfold: a key part of this type needs a std::hash specialisation or a hash_value() function
#include <keyfold/keyfold.hpp>

namespace kf = keyfold;

struct Point {
  int x = 0, y = 0;
  auto operator<=>(const Point&) const = default;
};
#ifndef KEYFOLD_MISTAKE
inline std::size_t hash_value(const Point& p) { return static_cast<std::size_t>(p.x * 31 + p.y); }
#endif
struct Cell {
  Point at;
  int value = 0;
};
using Cells = kf::Table<Cell, kf::Key<&Cell::at>>;

void fill(Cells& cells) { cells.insert(Cell()); }
