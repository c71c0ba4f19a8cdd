// The program that printers.sh has gdb stop in.
#include <keyfold/keyfold.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace {

struct Order {
  int id = 0;
  std::string status;
  bool operator==(const Order&) const = default;
};

// Kept behind a pointer, since its moves may throw.
struct Note {
  Note() = default;
  Note(int number_, std::string text_) : number(number_), text(std::move(text_)) {}
  Note(const Note&) = default;
  Note& operator=(const Note&) = default;
  Note(Note&& other) noexcept(false) : Note(static_cast<const Note&>(other)) {}
  Note& operator=(Note&&) = default;
  ~Note() = default;

  int number = 0;
  std::string text;
};

}  // namespace

[[gnu::noinline]] void stop_here() { asm volatile(""); }

int main() {
  keyfold::TableOptions options;
  options.clock = [] { return keyfold::Timestamp(std::chrono::sys_days(std::chrono::year(2026) / 3 / 1)); };

  using Orders = keyfold::Table<Order, keyfold::Key<&Order::id>, keyfold::HashedBy<&Order::status>>;
  Orders orders(options);
  orders.append(std::vector<Order>{{1, "open"}, {2, "open"}, {3, "paid"}});
  const auto first = orders.as_of(keyfold::Version{1});
  const auto result = orders.merge(std::vector<Order>{{1, "paid"}, {2, "cancelled"}, {4, "open"}})
                          .when_matched(keyfold::source<&Order::status> == "cancelled")
                          .erase()
                          .when_matched()
                          .update_all()
                          .when_not_matched()
                          .insert_all()
                          .metadata("batch 7")
                          .execute();
  const auto second = orders.as_of(keyfold::Version{2});
  const auto unchanged = orders.upsert(std::vector<Order>{{1, "paid"}});
  orders.update_where(keyfold::target<&Order::id> == 3, keyfold::target<&Order::id> = 5);

  const auto history = orders.history();
  const auto merge = history[1];
  const auto rekey = history.back();
  const auto changes = result.changes();
  const auto change = changes[0];
  const auto metrics = result.metrics();
  const auto feed = orders.changes(keyfold::Version{2}, keyfold::Version{3});
  const auto begin = orders.begin();

  keyfold::Table<Note, keyfold::OrderedKey<&Note::number>> notes(options);
  notes.append(std::vector<Note>{{3, "c"}, {1, "a"}, {4, "d"}, {2, "b"}});
  notes.erase(2);
  const auto notes_before = notes.as_of(keyfold::Version{1});
  const auto notes_history = notes.history();
  const auto last_note = notes_history.back();

  keyfold::Table<Note, keyfold::Key<&Note::number>> many(options);
  std::vector<Note> many_rows;
  for (int number = 0; number < 300; ++number) many_rows.push_back({number, "n"});
  many.append(many_rows);
  many.upsert({7, "seven"});
  const auto many_history = many.history();
  const auto one_of_many = many_history.back();

  Orders expiring;
  for (const int id : {1, 2, 3}) expiring.insert({id, "open"});
  const auto expired = expiring.as_of(keyfold::Version{1});
  expiring.tag("kept", 2);
  const auto tagged = expiring.as_of("kept");
  expiring.expire(keyfold::keep_last(1));

  auto doomed = std::make_unique<Orders>();
  const auto dangling = doomed->as_of(keyfold::Version{0});
  doomed.reset();

  // What may be in the memory of a variable before it is constructed: elements without an end, from address 0
  // on.
  using Changes = keyfold::ChangeSet<Order>;
  alignas(Changes) std::array<std::uintptr_t, sizeof(Changes) / sizeof(std::uintptr_t)> garbage{};
  garbage[1] = sizeof(keyfold::Change<Order>) << 40U;
  const auto* unborn = reinterpret_cast<const Changes*>(garbage.data());

  Orders empty;
  Orders moved_from;
  const auto moved_to = std::move(moved_from);
  stop_here();
  return first.empty() && second.empty() && unchanged.committed() && history.empty() &&
                 merge.version() == 0 && rekey.version() == 0 && change.before() == nullptr &&
                 metrics.inserted == 0 && feed.empty() && begin == orders.end() && notes_before.empty() &&
                 last_note.version() == 0 && one_of_many.version() == 0 && expired.version() == 0 &&
                 tagged.empty() && dangling.version() == 1 && unborn == nullptr && empty.empty() &&
                 moved_to.empty()
             ? 1
             : 0;
}
