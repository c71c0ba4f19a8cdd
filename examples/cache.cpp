// A cache with expiry: answers are kept for a while, at most so many, in a table that an OrderedBy keeps in
// the order of their end. History is of no use here: a retention lets it go.
#include <keyfold/keyfold.hpp>

#include <chrono>
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <utility>

using namespace std::chrono_literals;
class Cache {
  struct Entry {
    std::string question;
    std::string answer;
    kf::Timestamp ends{};
  };

 public:
  Cache(std::function<kf::Timestamp()> clock, std::chrono::seconds life, std::size_t limit)
      : clock_(std::move(clock)), life_(life), limit_(limit) {}

  std::optional<std::string> find(const std::string& question) const {
    const Entry* entry = entries_.find(question);
    if (entry == nullptr || entry->ends <= clock_()) return std::nullopt;
    return entry->answer;
  }

  void put(std::string question, std::string answer) {
    const kf::Timestamp now = clock_();
    auto tx = entries_.transaction();
    tx.erase_where(kf::target<&Entry::ends> <= now);
    tx.upsert(Entry{std::move(question), std::move(answer), now + life_});
    for (const Entry& entry : entries_.by<&Entry::ends>()) {  // outside the transaction, as they were
      if (tx.size() <= limit_) break;
      tx.erase(entry.question);
    }
    tx.commit();
  }

  template <class Callback>
  [[nodiscard]] kf::Subscription on_leave(Callback callback) {
    return entries_.subscribe([callback](const kf::Commit<Entry>& commit) {
      for (const auto& change : commit.changes()) {
        if (change.kind() == kf::ChangeKind::erase) callback(change.before()->question);
      }
    });
  }

 private:
  std::function<kf::Timestamp()> clock_;
  std::chrono::seconds life_;
  std::size_t limit_;
  kf::TableOptions options_{.retention = kf::keep_last(1)};
  kf::Table<Entry, kf::Key<&Entry::question>, kf::OrderedBy<&Entry::ends>> entries_{options_};
};

int main() {
  kf::Timestamp now{};
  Cache cache([&] { return now; }, 60s, 2);
  const auto leaving =
      cache.on_leave([](const std::string& question) { std::cout << "  gone: " << question << '\n'; });
  const auto ask = [&](const char* question) {
    std::cout << now.time_since_epoch() / 1s << " s, " << question << ": "
              << cache.find(question).value_or("(not known)") << '\n';
  };

  cache.put("one", "1");
  now += 20s;
  cache.put("two", "2");
  ask("one");
  cache.put("three", "3");  // the third: the oldest makes room
  ask("one");
  now += 61s;
  ask("three");  // still there, but too old
  cache.put("four", "4");  // takes the ended ones away
  ask("four");
}
