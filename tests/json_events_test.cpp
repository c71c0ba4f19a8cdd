// Change events in Debezium's envelope, as JSON.
#include <keyfold/json.hpp>
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

#include <algorithm>
#include <cstdint>
#include <random>
#include <sstream>

#include "support/property.hpp"
#include "support/rows.hpp"

namespace kf = keyfold;
using keyfold_test::rows_of;
using keyfold_test::Unharmed;

namespace {

struct Customer {
  int id = 0;
  std::string name;
  std::optional<std::int64_t> score;
  bool operator==(const Customer&) const = default;
};
BOOST_DESCRIBE_STRUCT(Customer, (), (id, name, score))

using Customers = kf::Table<Customer, kf::OrderedKey<&Customer::id>>;
using Rows = std::vector<Customer>;
using Event = kf::debezium::Event<Customer>;

template <class Of = Customers, auto... Key>
std::vector<Event> events(const std::string& text, const kf::debezium::EventOptions& options = {}) {
  std::istringstream stream(text);
  std::vector<Event> out;
  for (Event& event : kf::debezium::json_events<Of, Key...>(stream, "topic", options)) out.push_back(event);
  return out;
}

template <class Of = Customers, auto... Key>
kf::JsonError error_of(const std::string& text, const kf::debezium::EventOptions& options = {}) {
  INFO(text);
  return keyfold_test::error_of<kf::JsonError>([&] { static_cast<void>(events<Of, Key...>(text, options)); });
}

void load(Customers& table, const std::string& text) {
  std::istringstream stream(text);
  kf::debezium::apply_changes(table, kf::debezium::json_events<Customers>(stream)).execute();
}

kf::Timestamp at(std::int64_t microseconds) { return kf::Timestamp(std::chrono::microseconds(microseconds)); }

const std::string ann = R"({"id":1,"name":"Ann","score":null})";

}  // namespace

TEST_CASE("json events: an envelope a line, with the version as its log position") {
  const kf::ChangeSet<Customer> changes({kf::Change<Customer>::insert({1, "Ann", 5}),
                                         kf::Change<Customer>::update({2, "Bo", {}}, {2, "Bob", {}}),
                                         kf::Change<Customer>::erase({3, "Cy", {}})});
  std::ostringstream out;
  kf::debezium::write_json<Customers>(out, changes, 7, at(1'500'000'000'123'456));
  const std::string source =
      R"(,"source":{"connector":"keyfold","ts_ms":1500000000123,"ts_us":1500000000123456,"lsn":7},"op":")";
  const std::string end = "\",\"ts_ms\":1500000000123}\n";
  CHECK(out.str() ==
        R"({"before":{"id":3,"name":"Cy","score":null},"after":null)" + source + "d" + end +
            R"({"before":null,"after":{"id":1,"name":"Ann","score":5})" + source + "c" + end +
            R"({"before":{"id":2,"name":"Bo","score":null},"after":{"id":2,"name":"Bob","score":null})" +
            source + "u" + end);
}

TEST_CASE("json events: a time before 1970 is rounded down") {
  std::ostringstream out;
  kf::debezium::write_json<Customers>(out, kf::ChangeSet<Customer>({kf::Change<Customer>::erase({})}), 1,
                                      at(-1));
  CHECK_THAT(out.str(), keyfold_test::contains(R"("ts_ms":-1,"ts_us":-1,)"));
}

TEST_CASE("json events: a change of the key is a delete and a create, and a swap of keys survives") {
  Customers table;
  table.append(Rows{{1, "one", {}}, {2, "two", {}}, {3, "three", {}}});
  table.update_where(kf::target<&Customer::id> < 4,
                     kf::target<&Customer::id> = 4 - kf::target<&Customer::id>);
  REQUIRE(table.at(1).name == "three");

  std::ostringstream out;
  kf::debezium::write_json<Customers>(out, table.history().back());
  CHECK(std::ranges::count(out.str(), '\n') == 4);
  Customers copy;
  copy.append(Rows{{1, "one", {}}, {2, "two", {}}, {3, "three", {}}});
  load(copy, out.str());
  CHECK(rows_of(copy) == rows_of(table));
}

TEST_CASE("json events: members that are no concern of ours are passed over, also a schema") {
  const std::string envelope =
      R"({"before":null,"after":)" + ann +
      R"(,"source":{"version":"2.5.0.Final","connector":"postgresql","sequence":"[\"1\",\"2\"]","lsn":24023128},)"
      R"("transaction":null,"op":"c","ts_ms":1559033904863})";
  for (const std::string& line :
       {envelope, R"({"schema":{"type":"struct","fields":[{"type":"int32"}]},"payload":)" + envelope + "}"}) {
    const auto read = events(line);
    REQUIRE(read.size() == 1);
    CHECK(read[0].op == 'c');
    CHECK_FALSE(read[0].before);
    CHECK(read[0].after == Customer{1, "Ann", {}});
    CHECK(read[0].sequence == 24023128);
  }
}

TEST_CASE("json events: a member named payload beside an op is no envelope") {
  const auto read =
      events(R"({"op":"c","after":)" + ann + R"(,"payload":{"op":"d","before":null},"source":{"lsn":7}})");
  REQUIRE(read.size() == 1);
  CHECK(read[0].op == 'c');
  CHECK(read[0].after == Customer{1, "Ann", {}});
}

TEST_CASE("json events: a blank line or a null is a tombstone, which keeps its position") {
  const auto read = events("\nnull\n{\"schema\":null,\"payload\":null}\n{\"op\":\"d\",\"before\":" + ann +
                           ",\"after\":null,\"source\":{\"lsn\":3}}\n");
  REQUIRE(read.size() == 4);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(read[i].op == '\0');
    CHECK_FALSE(read[i].before);
    CHECK_FALSE(read[i].after);
  }
  CHECK(read[3].before == Customer{1, "Ann", {}});
}

TEST_CASE("json events: a truncate is for debezium::changes() to refuse, by its position") {
  Customers table;
  const Unharmed unharmed(table);
  const auto error = keyfold_test::error_of<kf::debezium::InvalidEvent>(
      [&] { load(table, "\n{\"op\":\"t\",\"source\":{\"lsn\":3}}\n"); });
  CHECK(error.position == 1);
  CHECK(error.op == "t");
}

TEST_CASE("json events: a line that is no envelope") {
  const auto missing = error_of("\n" + ann);
  CHECK(missing.file == "topic");
  CHECK(missing.line == 2);
  CHECK(missing.column == "op");
  CHECK_THAT(missing.what(), keyfold_test::contains("read plain rows"));
  CHECK(error_of("[]").column == "op");
  const auto wrong = error_of(R"({"op":"create","source":{"lsn":1}})");
  CHECK(wrong.column == "op");
  CHECK(wrong.offset == 6);
  CHECK_THAT(wrong.what(), keyfold_test::contains("found the text 'create' where one of c, u, d and r"));
  CHECK(error_of(R"({"op":1})").column == "op");
  CHECK(error_of(R"({"op":"c","after":[]})").column == "after");
  const auto inner = error_of(R"({"op":"c","after":{"id":"1"}})");
  CHECK(inner.column == "after.id");
  CHECK(inner.offset == 24);
  CHECK(error_of(R"({"op":"c","after":{"id":1,"score":1},"source":{"lsn":1}})").column == "after.name");
  CHECK(error_of(R"({"op":"c","after":{"id":1,"nick":1},"source":{"lsn":1}})").column == "after.nick");
}

TEST_CASE("json events: the row before a change needs the key and may lack the rest") {
  const std::string partial = R"({"op":"d","before":{"id":4,"name":null,"score":null},"source":{"lsn":1}})";
  CHECK(events(partial).at(0).before == Customer{4, "", {}});
  CHECK(events(R"({"op":"d","before":{"id":4},"source":{"lsn":1}})").at(0).before == Customer{4, "", {}});
  CHECK(events<Customer, &Customer::id>(partial).at(0).before == Customer{4, "", {}});
  CHECK(error_of(R"({"op":"d","before":{"name":"x"},"source":{"lsn":1}})").column == "before.id");
  CHECK(error_of(R"({"op":"d","before":{"id":null},"source":{"lsn":1}})").column == "before.id");
  // Without a key, which could be any column, all of them.
  CHECK(error_of<Customer>(partial).column == "before.name");
  // The row after a change needs all of them.
  CHECK(error_of(R"({"op":"u","after":{"id":4,"name":null,"score":1},"source":{"lsn":1}})").column ==
        "after.name");
}

TEST_CASE("json events: the sequence stands where one says") {
  const std::string mysql =
      R"({"op":"c","after":)" + ann + R"(,"source":{"pos":154,"gtid":"x"},"ts_ms":"99"})";
  CHECK(events(mysql, {.sequence = "source.pos"}).at(0).sequence == 154);
  CHECK(events(mysql, {.sequence = "ts_ms"}).at(0).sequence == 99);
  CHECK(events(mysql, {.sequence = ""}).at(0).sequence == 0);
  const auto missing = error_of(mysql);
  CHECK(missing.column == "source.lsn");
  CHECK_THAT(missing.what(),
             keyfold_test::contains("is missing; name another member in EventOptions::sequence"));
  CHECK(error_of(mysql, {.sequence = "source.gtid"}).column == "source.gtid");
  CHECK(error_of(mysql, {.sequence = "op.x"}).column == "op.x");
  CHECK(error_of(R"({"op":"c","source":{"lsn":-1}})").column == "source.lsn");
  CHECK(error_of(R"({"op":"c","source":{"lsn":null}})").column == "source.lsn");
  CHECK(events(R"({"op":"c","source":{"lsn":18446744073709551615}})").at(0).sequence == UINT64_MAX);
}

TEST_CASE("json events: a value that the database did not log is an error, or empty when one says so") {
  const std::string line =
      R"({"op":"u","after":{"id":1,"name":"x","score":"__debezium_unavailable_value"},"source":{"lsn":2}})";
  const auto error = error_of(line);
  CHECK(error.column == "after.score");
  CHECK(error.offset == 45);
  CHECK_THAT(error.what(), keyfold_test::contains("REPLICA IDENTITY FULL"));

  const kf::debezium::EventOptions options{.empty_unavailable = true};
  CHECK(events(line, options).at(0).after == Customer{1, "x", {}});
  Customers table;
  table.insert({1, "y", 5});
  std::istringstream stream(line);
  kf::debezium::apply_changes(table, kf::debezium::json_events<Customers>(stream, "topic", options))
      .ignore_null_updates()
      .execute();
  CHECK(table.at(1) == Customer{1, "x", 5});

  // A column that is not optional has no room for it.
  const std::string name = R"({"op":"u","after":{"id":1,"name":"__debezium_unavailable_value","score":1}})";
  CHECK(error_of(name).column == "after.name");
  CHECK(error_of(name, options).column == "after.name");
  CHECK(error_of(name, options).offset == 33);
  // In a row before, only the key counts.
  CHECK(events(R"({"op":"d","before":{"id":1,"name":"__debezium_unavailable_value"},"source":{"lsn":2}})",
               options)
            .at(0)
            .before == Customer{1, "", {}});
}

namespace {

// A table with a random history of `commits` commits.
Customers any_history(std::mt19937& random, int commits) {
  Customers table;
  const auto below = [&](int limit) { return std::uniform_int_distribution(0, limit - 1)(random); };
  const auto any_row = [&] {
    return Customer{below(12),
                    std::string(static_cast<std::size_t>(below(3)), static_cast<char>('a' + below(3))),
                    below(2) == 0 ? std::optional<std::int64_t>() : std::int64_t{below(5)} << 60};
  };
  for (int i = 0; i < commits; ++i) {
    switch (below(6)) {
      case 0:
        table.erase(below(12));
        break;
      case 1:
        table.clear();
        break;
      case 2:  // keys move over other rows that move away
        table.update_where(kf::target<&Customer::id> >= below(12),
                           kf::target<&Customer::id> = kf::target<&Customer::id> + 1);
        break;
      case 3:
        table.update_where(kf::target<&Customer::id> < 12,
                           kf::target<&Customer::id> = 11 - kf::target<&Customer::id>);
        break;
      default: {
        Rows rows;
        for (int n = 1 + below(4); n > 0; --n) rows.push_back(any_row());
        table.merge(rows)
            .duplicates(kf::keep_last)
            .when_matched()
            .update_all()
            .when_not_matched()
            .insert_all()
            .execute();
      }
    }
  }
  return table;
}

}  // namespace

TEST_CASE(
    "json events: a history that went through lines of JSON makes the same table, in any order of its "
    "versions") {
  std::mt19937 random(7);
  for (int round = keyfold_test::scaled(150); round > 0; --round) {
    const Customers table = any_history(random, 12);
    std::vector<std::string> files;
    std::ostringstream whole;
    kf::debezium::write_json<Customers>(whole, table.changes(0, table.version()));
    for (const auto& commit : table.history()) {
      std::ostringstream file;
      kf::debezium::write_json<Customers>(file, commit);
      files.push_back(file.str());
    }
    std::string joined;
    for (const auto& file : files) joined += file;
    REQUIRE(joined == whole.str());

    Customers at_once;
    load(at_once, whole.str());
    REQUIRE(rows_of(at_once) == rows_of(table));

    std::ranges::shuffle(files, random);
    Customers piecemeal;
    for (const auto& file : files) load(piecemeal, file);
    REQUIRE(rows_of(piecemeal) == rows_of(table));
  }
}

TEST_CASE("json events: lines that are cut or garbled are events or a JsonError") {
  std::mt19937 random(11);
  std::ostringstream out;
  const Customers table = any_history(random, 4);
  kf::debezium::write_json<Customers>(out, table.changes(0, table.version()));
  const std::string whole = "{\"schema\":{},\"payload\":{\"op\":\"c\",\"after\":" + ann + "}}\n" + out.str();
  int accepted = 0;
  int refused = 0;
  const auto below = [&](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
  };
  for (int i = keyfold_test::scaled(5'000); i > 0; --i) {
    std::string text = whole.substr(0, below(whole.size()));
    if (!text.empty()) text[below(text.size())] = "{}[]\",:01x \\n\n"[below(14)];
    try {
      accepted += static_cast<int>(!events(text, {.sequence = ""}).empty());
    } catch (const kf::JsonError& error) {
      refused += error.line > 0 ? 1 : 0;
    }
  }
  CHECK(accepted > 0);
  CHECK(refused > accepted);
}
