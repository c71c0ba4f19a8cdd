// expect: keyfold: JSON has but one null; make the column a std::optional of no other one
#include <keyfold/json.hpp>

#include <boost/describe/class.hpp>

#include <optional>
#include <sstream>
#include <vector>

struct Answer {
  int question = 0;
#ifdef KEYFOLD_MISTAKE
  std::optional<std::optional<int>> choice;
#else
  std::optional<int> choice;
#endif
};
BOOST_DESCRIBE_STRUCT(Answer, (), (question, choice))

void write(std::ostream& stream) { keyfold::write_json(stream, std::vector<Answer>()); }
