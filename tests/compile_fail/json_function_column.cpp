// expect: keyfold: JSON can only be read into data members
#include <keyfold/json.hpp>

#include <sstream>

struct Row {
  int id = 0;
  int twice() const { return 2 * id; }
};
#ifdef KEYFOLD_MISTAKE
template <>
struct keyfold::columns_of<Row> : keyfold::Columns<&Row::id, &Row::twice> {};
#else
template <>
struct keyfold::columns_of<Row> : keyfold::Columns<&Row::id> {};
#endif

auto rows(std::istream& stream) { return keyfold::read_json<Row>(stream); }
