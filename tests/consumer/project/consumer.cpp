#include <keyfold/keyfold.hpp>

#include <string>
#include <vector>

struct City {
  int id{};
  std::string name;
  bool operator==(const City&) const = default;
};

int main() {
  keyfold::Table<City, keyfold::Key<&City::id>> cities;
  cities.upsert(std::vector<City>{{1, "Oslo"}, {2, "Bergen"}});
  cities.upsert(std::vector<City>{{2, "Bergen"}, {3, "Tromsø"}});
  return cities.size() == 3 ? 0 : 1;
}
