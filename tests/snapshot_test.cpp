// save() and load(): what comes back, what is refused, and what files of other programs become.
#include <keyfold/keyfold.hpp>
#include <keyfold/print.hpp>
#include <keyfold/snapshot.hpp>

#include <boost/serialization/vector.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory_resource>
#include <set>
#include <thread>

#include "support/catch.hpp"
#include "support/rows.hpp"
#include "support/snapshot_bytes.hpp"

namespace kf = keyfold;
using keyfold_test::contains;
using keyfold_test::error_of;
using keyfold_test::loaded;
using keyfold_test::saved;

namespace snapshot_rows {

struct Reading {
  std::int64_t sensor = 0;
  std::int64_t value = 0;
  bool operator==(const Reading&) const = default;
};
BOOST_DESCRIBE_STRUCT(Reading, (), (sensor, value))

struct Frame {
  std::int64_t number = 0;
  std::array<std::int64_t, 16> samples{};
  bool operator==(const Frame&) const = default;
};
BOOST_DESCRIBE_STRUCT(Frame, (), (number, samples))

struct Order {
  std::int64_t id = 0;
  std::string customer;
  std::optional<std::int32_t> code;
  kf::Timestamp at{};
  bool operator==(const Order&) const = default;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, customer, code, at))

/// The next version of a program: a column more, one with another name, one less.
struct NewOrder {
  std::int64_t id = 0;
  std::int16_t priority = 5;
  std::string buyer;
  kf::Timestamp at{};
  bool operator==(const NewOrder&) const = default;
};
BOOST_DESCRIBE_STRUCT(NewOrder, (), (id, priority, buyer, at))

/// The same without a word about what became of the columns.
struct SilentOrder {
  std::int64_t id = 0;
  std::string buyer;
  kf::Timestamp at{};
};
BOOST_DESCRIBE_STRUCT(SilentOrder, (), (id, buyer, at))

struct Item {
  int number = 0;  // was `code`...
  int code = 0;    // ...and this is another one
};
BOOST_DESCRIBE_STRUCT(Item, (), (number, code))

/// Says of two columns that they are one.
struct Couple {
  int id = 0;
  std::string his;
  std::string hers;
};
BOOST_DESCRIBE_STRUCT(Couple, (), (id, his, hers))
struct Single {
  int id = 0;
  std::string theirs;
};
BOOST_DESCRIBE_STRUCT(Single, (), (id, theirs))

/// An order with columns less, and one more of a type that none of them has.
struct ShortOrder {
  std::int64_t id = 0;
  double weight = 1.5;
  bool operator==(const ShortOrder&) const = default;
};
BOOST_DESCRIBE_STRUCT(ShortOrder, (), (id, weight))

/// Columns of every sort around one that stays.
struct Tree {
  std::string name;
  std::vector<Tree> branches;
  std::map<std::string, std::optional<int>> leaves;
  std::variant<int, std::string> fruit;
  int height = 0;
};
BOOST_DESCRIBE_STRUCT(Tree, (), (name, branches, leaves, fruit, height))
struct Trunk {
  std::string name;
  int height = 0;
  bool operator==(const Trunk&) const = default;
};
BOOST_DESCRIBE_STRUCT(Trunk, (), (name, height))

struct NarrowOrder {
  std::int32_t id = 0;
  std::string customer;
  std::optional<std::int32_t> code;
  kf::Timestamp at{};
};
BOOST_DESCRIBE_STRUCT(NarrowOrder, (), (id, customer, code, at))

struct RenamedKey {
  std::string customer;
  kf::Timestamp at{};
  std::int64_t order_id = 0;
  std::optional<std::int32_t> code;
};
BOOST_DESCRIBE_STRUCT(RenamedKey, (), (customer, at, order_id, code))

struct Muddled {
  std::int64_t id = 0;
  std::string customer;
  std::optional<std::int32_t> code;
  kf::Timestamp at{};
};
BOOST_DESCRIBE_STRUCT(Muddled, (), (id, customer, code, at))

template <unsigned version>
class Person {
 public:
  Person() = default;
  Person(int id, std::string name) : id_(id), name_(std::move(name)) {}
  int id() const { return id_; }
  const std::string& name() const { return name_; }
  int age = -1;
  bool operator==(const Person&) const = default;

 private:
  friend class boost::serialization::access;
  template <class Archive>
  void serialize(Archive& archive, unsigned stored) {
    archive & id_ & name_;
    if (stored >= 1) archive & age;
  }
  int id_ = 0;
  std::string name_;
};

struct Gauge {
  double key = 0;
  double value = 0;
};
BOOST_DESCRIBE_STRUCT(Gauge, (), (key, value))

using Orders = kf::Table<Order, kf::Key<&Order::id>, kf::UniqueBy<&Order::code>>;
using NewOrders = kf::Table<NewOrder, kf::Key<&NewOrder::id>>;

/// Three rows, four commits, a tag, a number.
Orders some_orders() {
  kf::TableOptions options;
  options.clock = [] { return kf::Timestamp(std::chrono::microseconds(1000)); };
  Orders orders(options);
  orders.append(std::vector<Order>{{1, "ann", 10, {}}, {2, "bob", {}, {}}, {3, "cyd", 30, {}}});
  orders.metadata("second file").erase(2);
  orders.once("loader", 7).upsert(Order{1, "ann", 11, kf::Timestamp(std::chrono::seconds(1))});
  orders.insert({2, "bob again", 20, {}});
  orders.tag("before", 2);
  return orders;
}

auto rows_of(const auto& rows) {
  using Row = std::remove_cvref_t<decltype(*rows.begin())>;
  return std::vector<Row>(rows.begin(), rows.end());
}

std::string text_of(const Orders& orders) {
  std::ostringstream out;
  out << kf::print(orders) << kf::print(orders.history());
  for (const auto commit : orders.history()) out << kf::print(commit.changes());
  for (kf::Version v = 0; v <= orders.version(); ++v) out << kf::print(orders.as_of(v));
  for (const auto& [name, version] : orders.tags()) out << name << version;
  out << *orders.last_applied("loader");
  return out.str();
}

class Directory {
 public:
  Directory()
      : path_(std::filesystem::temp_directory_path() / ("keyfold-snapshot-" + std::to_string(::getpid()))) {
    std::filesystem::create_directory(path_);
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  std::filesystem::path operator/(const char* name) const { return path_ / name; }
  std::set<std::string> names() const {
    std::set<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) out.insert(entry.path().filename());
    return out;
  }

 private:
  std::filesystem::path path_;
};

std::string content_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Lets no reader seek.
class PipeBuffer : public std::stringbuf {
 public:
  using std::stringbuf::stringbuf;
  pos_type seekoff(off_type, std::ios_base::seekdir, std::ios_base::openmode) override { return -1; }
  pos_type seekpos(pos_type, std::ios_base::openmode) override { return -1; }
};

/// Breaks when it is read to its end.
class BreakingBuffer : public PipeBuffer {
 public:
  using PipeBuffer::PipeBuffer;
  int_type underflow() override { throw std::ios_base::failure("broken"); }
};

/// Tells where it is, but cannot go there.
class StuckBuffer : public std::stringbuf {
 public:
  using std::stringbuf::stringbuf;
  pos_type seekpos(pos_type, std::ios_base::openmode) override { return -1; }
  pos_type seekoff(off_type by, std::ios_base::seekdir from, std::ios_base::openmode mode) override {
    return from == std::ios_base::beg ? pos_type(-1) : std::stringbuf::seekoff(by, from, mode);
  }
};

/// Makes a directory the current one.
class Inside {
 public:
  explicit Inside(const std::filesystem::path& directory) : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(directory);
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() { std::filesystem::current_path(before_); }

 private:
  std::filesystem::path before_;
};

/// Counts the bytes that are out, now and at most.
class Peak final : public std::pmr::memory_resource {
 public:
  std::size_t now = 0;
  std::size_t most = 0;

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    void* const memory = std::pmr::new_delete_resource()->allocate(bytes, alignment);
    most = std::max(most, now += bytes);
    return memory;
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    now -= bytes;
    std::pmr::new_delete_resource()->deallocate(memory, bytes, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

}  // namespace snapshot_rows

BOOST_CLASS_VERSION(snapshot_rows::Person<1>, 1)

template <>
struct keyfold::schema_changes<snapshot_rows::Item> {
  static constexpr keyfold::RenamedColumn renamed[] = {{"code", "number"}};
};
template <>
struct keyfold::schema_changes<snapshot_rows::NewOrder> {
  static constexpr keyfold::RenamedColumn renamed[] = {{"customer", "buyer"}};
  static constexpr std::string_view dropped[] = {"code"};
};
template <>
struct keyfold::schema_changes<snapshot_rows::Single> {
  static constexpr keyfold::RenamedColumn renamed[] = {{"his", "theirs"}, {"hers", "theirs"}};
};
template <>
struct keyfold::schema_changes<snapshot_rows::RenamedKey> {
  static constexpr keyfold::RenamedColumn renamed[] = {{"id", "order_id"}};
};
template <>
struct keyfold::schema_changes<snapshot_rows::Muddled> {
  static constexpr keyfold::RenamedColumn renamed[] = {{"old_customer", "customer"}};
};

using namespace snapshot_rows;

TEST_CASE("a table comes back from a file with all that it shows") {
  const Directory directory;
  const Orders orders = some_orders();
  kf::save(orders, directory / "orders.kfs");
  const Orders back = kf::load<Orders>(directory / "orders.kfs");
  CHECK(text_of(back) == text_of(orders));
  CHECK(rows_of(back) == std::vector<Order>{{1, "ann", 11, kf::Timestamp(std::chrono::seconds(1))},
                                            {3, "cyd", 30, {}},
                                            {2, "bob again", 20, {}}});
  CHECK(rows_of(back.as_of("before")) == std::vector<Order>{{1, "ann", 10, {}}, {3, "cyd", 30, {}}});
  CHECK(back.by<&Order::code>().find(20)->customer == "bob again");
  CHECK(back.history()[1].metadata() == "second file");
  CHECK(back.last_applied("loader") == 7);
  CHECK(directory.names() == std::set<std::string>{"orders.kfs"});
}

TEST_CASE("a loaded table goes on where the saved one stopped") {
  Orders orders = some_orders();
  Orders back = loaded<Orders>(saved(orders), {.table = {.clock = [] { return kf::Timestamp(); }}});
  CHECK(back.erase(3).version() == 5);
  CHECK(back.history()[4].timestamp() == orders.history()[3].timestamp() + std::chrono::microseconds(1));
  CHECK(back.once("loader", 7).erase(1).already_applied());
  CHECK_THROWS_AS(back.undo(2), kf::ChangeConflict);  // the erase of a key that has a row again
}

TEST_CASE("an undo on a loaded table conflicts as on the saved one") {
  Orders back = loaded<Orders>(saved(some_orders()));
  CHECK_THROWS_AS(back.undo(1), kf::ChangeConflict);
  back.undo(4);
  CHECK(back.find(2) == nullptr);
}

TEST_CASE("an empty table comes back empty, one without history without it") {
  CHECK(loaded<Orders>(saved(Orders())).version() == 0);
  Orders orders = some_orders();
  orders.untag("before");
  orders.expire(kf::keep_last(1));
  const Orders back = loaded<Orders>(saved(orders));
  CHECK(rows_of(back) == rows_of(orders));
  CHECK(back.version() == 4);
  CHECK_THROWS_AS(back.as_of(3), kf::VersionExpired);
}

TEST_CASE("loading takes no more for the log than the table keeps") {
  using Frames = kf::Table<Frame, kf::Key<&Frame::number>>;
  Frames table;
  std::vector<Frame> rows;
  for (int i = 0; i < 5'000; ++i) rows.push_back({i, {}});
  table.append(rows);
  table.overwrite(std::vector<Frame>{{-1, {}}});  // one new row beside 5,000 old ones
  std::istringstream in(saved(table));
  Peak memory;
  kf::TableOptions options;
  options.memory = &memory;
  const auto back = kf::load<Frames>(in, {.table = options});
  CHECK(saved(back) == saved(table));
  CHECK(memory.most <= memory.now + 64 * 1024);
  CHECK(back.memory_usage().history <= table.memory_usage().history + 1024);
}

TEST_CASE("a text that the commits of a file share is counted once") {
  using snapshot_rows::Reading;
  kf::Table<Reading, kf::Key<&Reading::sensor>> table;
  for (int i = 0; i < 1000; ++i) table.upsert({i % 10, i});
  const std::size_t text = table.history()[0].parameters().size();
  const auto back = loaded<decltype(table)>(saved(table));
  CHECK(back.memory_usage().history >= table.memory_usage().history + text);
  CHECK(back.memory_usage().history <= table.memory_usage().history + 3 * text);
}

TEST_CASE("the same table gives the same bytes, and so does what was loaded from them") {
  CHECK(saved(some_orders()) == saved(some_orders()));
  CHECK(saved(loaded<Orders>(saved(some_orders()))) == saved(some_orders()));
}

// Entries of the log have three sizes, here of 16, 24 and 40 bytes; however many of each there are in a
// commit, also where their average is the size of one of them.
TEST_CASE("changes of all sizes in one commit come back, in any mixture") {
  using snapshot_rows::Reading;
  for (int returning = 0; returning < 4; ++returning) {
    for (int added = 0; added < 5; ++added) {
      for (int updated = 0; updated < 4; ++updated) {
        kf::Table<Reading, kf::Key<&Reading::sensor>> table;
        table.append({{1, 0}, {2, 0}, {3, 0}, {11, 0}, {12, 0}, {13, 0}});
        table.erase_where(kf::target<&Reading::sensor> < 10);
        std::vector<Reading> batch;
        for (int i = 0; i < returning; ++i) batch.push_back({1 + i, 1});
        for (int i = 0; i < added; ++i) batch.push_back({21 + i, 1});
        for (int i = 0; i < updated; ++i) batch.push_back({11 + i, 1});
        table.upsert(batch);
        for (Reading& row : batch) row.value = 2;
        table.upsert(batch);
        const auto back = loaded<decltype(table)>(saved(table));
        REQUIRE(back.version() == table.version());
        for (kf::Version v = 0; v <= table.version(); ++v)
          REQUIRE(std::ranges::equal(back.as_of(v), table.as_of(v)));
        REQUIRE(saved(back) == saved(table));
      }
    }
  }
}

TEST_CASE("many rows and commits come back, chunk by chunk") {
  Orders orders;
  std::vector<Order> rows;
  for (int i = 0; i < 20000; ++i)
    rows.push_back({i, std::string(static_cast<std::size_t>(i % 50), 'x'), i, {}});
  orders.append(rows);
  for (Order& row : rows) row.code.reset();
  rows.resize(9000);
  orders.upsert(rows);
  orders.erase_where(kf::target<&Order::id> < 5000);
  const Orders back = loaded<Orders>(saved(orders));
  CHECK(rows_of(back) == rows_of(orders));
  for (const kf::Version v : {1U, 2U}) CHECK(rows_of(back.as_of(v)) == rows_of(orders.as_of(v)));
  CHECK(back.memory_usage().rows <= orders.memory_usage().rows);  // without the room of rows that are gone
}

TEST_CASE("streams hold one snapshot after the other") {
  std::stringstream stream;
  kf::save(some_orders(), stream);
  kf::save(Orders(), stream);
  stream << "more";
  CHECK(kf::load<Orders>(stream).size() == 3);
  CHECK(kf::load<Orders>(stream).empty());
  std::string rest;
  stream >> rest;
  CHECK(rest == "more");
}

TEST_CASE("a stream that cannot seek can be loaded from") {
  PipeBuffer buffer(saved(some_orders()));
  std::istream pipe(&buffer);
  CHECK(kf::load<Orders>(pipe).size() == 3);
}

TEST_CASE("a pipe can be loaded from") {
  const Directory directory;
  const auto path = directory / "pipe";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  const std::string bytes = saved(some_orders());
  std::thread writer([&] { std::ofstream(path, std::ios::binary) << bytes; });
  const Orders back = kf::load<Orders>(path);
  writer.join();
  CHECK(saved(back) == bytes);
}

TEST_CASE("rows with a serialize() come back; older class versions are read as such") {
  using Old = kf::Table<Person<0>, kf::Key<&Person<0>::id>>;
  using New = kf::Table<Person<1>, kf::Key<&Person<1>::id>>;
  Old old;
  old.append(std::vector<Person<0>>{{1, "ann"}, {2, "bob"}});
  old.erase(1);
  const std::string bytes = saved(old);
  CHECK(loaded<Old>(bytes).at(2) == Person<0>(2, "bob"));
  New present = loaded<New>(bytes);
  CHECK(present.at(2).name() == "bob");
  CHECK(present.at(2).age == -1);
  CHECK(present.as_of(1).at(1).name() == "ann");
  try {
    static_cast<void>(loaded<Old>(saved(present)));
    FAIL("it was loaded");
  } catch (const kf::UnsupportedFormat& error) {
    CHECK(error.found == 1);
    CHECK(error.known == 0);
    CHECK_THAT(error.what(), contains("1") && contains("0"));
  }
}

TEST_CASE("a column more has its default, one is renamed, one dropped, whatever their order") {
  NewOrders orders = loaded<NewOrders>(saved(some_orders()));
  CHECK(orders.at(1) == NewOrder{1, 5, "ann", kf::Timestamp(std::chrono::seconds(1))});
  CHECK(orders.as_of(1).at(2) == NewOrder{2, 5, "bob", {}});
  CHECK(loaded<NewOrders>(saved(orders)).at(2).buyer == "bob again");
  using Renamed = kf::Table<RenamedKey, kf::Key<&RenamedKey::order_id>>;
  CHECK(loaded<Renamed>(saved(some_orders())).at(3).customer == "cyd");
}

TEST_CASE("columns that the program no longer has are skipped, whatever their types") {
  using ShortOrders = kf::Table<ShortOrder, kf::Key<&ShortOrder::id>>;
  const ShortOrders orders = loaded<ShortOrders>(saved(some_orders()));
  CHECK(rows_of(orders) == std::vector<ShortOrder>{{1, 1.5}, {3, 1.5}, {2, 1.5}});
  CHECK(rows_of(orders.as_of("before")) == std::vector<ShortOrder>{{1, 1.5}, {3, 1.5}});

  kf::Table<Tree, kf::Key<&Tree::name>> trees;
  const Tree twig{"twig", {}, {{"a", 1}, {"b", {}}}, "fig", 2};
  trees.append(std::vector<Tree>{{"elm", {twig, {"bough", {twig}, {}, 3, 4}}, {}, 5, 30}, twig});
  using Trunks = kf::Table<Trunk, kf::Key<&Trunk::name>>;
  CHECK(rows_of(loaded<Trunks>(saved(trees))) == std::vector<Trunk>{{"elm", 30}, {"twig", 2}});
}

template <class Table>
void check_mismatch(const std::string& bytes, const std::string& column, const std::string& stored,
                    const std::string& program) {
  try {
    static_cast<void>(loaded<Table>(bytes));
    FAIL("it was loaded");
  } catch (const kf::SchemaMismatch& error) {
    CHECK(error.column == column);
    CHECK(error.stored == stored);
    CHECK(error.program == program);
    CHECK_THAT(error.what(), contains(column) && contains(stored) && contains(program));
  }
}

TEST_CASE("a schema that does not fit is refused, naming the column and both types") {
  const std::string bytes = saved(some_orders());
  check_mismatch<kf::Table<NarrowOrder, kf::Key<&NarrowOrder::id>>>(bytes, "id", "int64", "int32");
  check_mismatch<kf::Table<SilentOrder, kf::Key<&SilentOrder::id>>>(
      bytes, "customer", "text", "no such column, but a column 'buyer' that the file has not");
  check_mismatch<kf::Table<Person<0>, kf::Key<&Person<0>::id>>>(bytes, "<row>", "columns",
                                                                "an object that writes itself");
  check_mismatch<kf::Table<Order, kf::OrderedKey<&Order::id>>>(bytes, "<key>", "Key(id)", "OrderedKey(id)");
  check_mismatch<kf::Table<Order, kf::Key<&Order::id, &Order::code>>>(bytes, "<key>", "Key(id)",
                                                                      "Key(id, code)");
  kf::Table<Couple, kf::Key<&Couple::id>> couples;
  couples.insert({1, "a", "b"});
  check_mismatch<kf::Table<Single, kf::Key<&Single::id>>>(saved(couples), "hers", "text",
                                                          "column 'theirs' for two");
}

TEST_CASE("rows that a unique index of the program does not allow are refused") {
  using Loose = kf::Table<Order, kf::Key<&Order::id>>;
  Loose loose;
  loose.append(std::vector<Order>{{1, "a", 5, {}}, {2, "b", {}, {}}, {3, "c", {}, {}}});
  CHECK(loaded<Orders>(saved(loose)).size() == 3);  // empty ones are exempt
  loose.insert({4, "d", 5, {}});
  try {
    static_cast<void>(loaded<Orders>(saved(loose)));
    FAIL("it was loaded");
  } catch (const kf::UniqueViolation& error) {
    CHECK(error.index == "code");
    CHECK(error.key == "5");
  }
}

TEST_CASE("every flip of a bit of a snapshot is found, and every truncation") {
  const std::string good = saved(some_orders());
  REQUIRE(loaded<Orders>(good).size() == 3);
  std::size_t believed = 0;
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bytes = good;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    try {
      static_cast<void>(loaded<Orders>(bytes));
      ++believed;
    } catch (const kf::CorruptSnapshot& error) {
      CHECK(error.file == "<bytes>");
      CHECK(error.offset <= bytes.size());
    }
  }
  for (std::size_t size = 0; size < good.size(); ++size) {
    try {
      static_cast<void>(loaded<Orders>(good.substr(0, size)));
      ++believed;
    } catch (const kf::CorruptSnapshot& error) {
      CHECK(error.offset <= size);
    }
  }
  std::cout << "snapshot: " << good.size() * 8 << " flips and " << good.size() << " truncations, " << believed
            << " believed\n";
  CHECK(believed == 0);
}

TEST_CASE("a missing, doubled or exchanged chunk is found") {
  Orders orders;
  for (int i = 0; i < 6; ++i) orders.insert({i, std::string(200000, static_cast<char>('a' + i)), {}, {}});
  const std::string good = saved(orders);
  std::vector<std::pair<std::size_t, std::size_t>> chunks;  // start, size
  for (std::size_t at = 16; at < good.size(); at += chunks.back().second) {
    const auto size =
        kf::detail::load_number<std::uint64_t>(reinterpret_cast<const std::byte*>(&good[at + 4]));
    chunks.emplace_back(at, size + 20);
  }
  REQUIRE(chunks.size() >= 5);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const auto [at, size] = chunks[i];
    std::string without = good;
    without.erase(at, size);
    CHECK_THROWS_AS(loaded<Orders>(without), kf::CorruptSnapshot);
    std::string doubled = good;
    doubled.insert(at, good.substr(at, size));
    if (i + 1 < chunks.size()) CHECK_THROWS_AS(loaded<Orders>(doubled), kf::CorruptSnapshot);
  }
}

TEST_CASE("a file with something behind the snapshot, and one that is none, are refused") {
  const Directory directory;
  const auto path = directory / "x.kfs";
  const auto write = [&](const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; };
  const std::string good = saved(some_orders());
  write(good + "x");
  try {
    static_cast<void>(kf::load<Orders>(path));
    FAIL("it was loaded");
  } catch (const kf::CorruptSnapshot& error) {
    CHECK(error.offset == good.size());
    CHECK(error.file == path.string());
  }
  const auto refusal = [&](const std::string& bytes) {
    write(bytes);
    const auto error = error_of<kf::CorruptSnapshot>([&] { static_cast<void>(kf::load<Orders>(path)); });
    CHECK(error.file == path.string());
    return std::string(error.what()).substr(path.string().size() + 2);
  };
  CHECK_THAT(refusal(""), contains(" is no snapshot of keyfold: it is empty; check the path"));
  CHECK_THAT(refusal("id,customer\n1,ann and what else there is\n"),
             contains(" is no snapshot of keyfold: it does not begin as one; check the path"));
  CHECK_THAT(refusal("x\n"),
             contains(" is no snapshot of keyfold: it does not begin as one; check the path"));
  CHECK_THAT(refusal(good.substr(0, 5)), contains("it ends too early"));
  std::istringstream stream("not a snapshot");
  CHECK_THROWS_WITH(kf::load<Orders>(stream), contains("'<stream>' is no snapshot of keyfold"));
}

TEST_CASE(
    "a later format and chunks of unknown kinds are refused with both numbers; optional ones are passed "
    "over") {
  const std::string good = saved(some_orders());
  const auto number = [](const std::string& bytes, std::uint64_t& known) -> std::uint64_t {
    try {
      static_cast<void>(loaded<Orders>(bytes));
      return 0;
    } catch (const kf::UnsupportedFormat& error) {
      known = error.known;
      return error.found;
    }
  };
  std::uint64_t known = 0;
  std::string later = good;
  later[8] = 2;
  keyfold_test::seal(later);
  CHECK(number(later, known) == 2);
  CHECK(known == 1);

  const std::size_t end = good.size() - 28;
  const auto with_chunk = [&](const char(&kind)[5]) {
    std::string chunk(16, '\0');
    chunk.replace(0, 4, kind, 4);
    chunk[4] = 3;
    std::string bytes = good.substr(0, end) + chunk + "abc1234" + good.substr(end);
    const std::uint64_t size = bytes.size();
    kf::detail::store_number(reinterpret_cast<std::byte*>(&bytes[bytes.size() - 12]), size);
    keyfold_test::seal(bytes);
    return bytes;
  };
  CHECK(number(with_chunk("\x09\0\0\0"), known) == 9);
  CHECK(known == 3);
  CHECK(loaded<Orders>(with_chunk("\x09\0\0\x80")).size() == 3);
}

TEST_CASE("a key that is NaN or there twice is refused although the checksums are right") {
  using Gauges = kf::Table<Gauge, kf::Key<&Gauge::key>>;
  Gauges gauges;
  gauges.append(std::vector<Gauge>{{1.5, 111.0}, {2.5, 222.0}});
  const std::string good = saved(gauges);
  const auto with_key = [&](double key) {
    std::string bytes = good;
    double old = 2.5;
    const std::size_t at = bytes.find(std::string(reinterpret_cast<const char*>(&old), 8));
    REQUIRE(at != std::string::npos);
    bytes.replace(at, 8, std::string(reinterpret_cast<const char*>(&key), 8));
    keyfold_test::seal(bytes);
    return bytes;
  };
  CHECK(loaded<Gauges>(with_key(3.5)).size() == 2);
  CHECK_THROWS_WITH(loaded<Gauges>(with_key(std::nan(""))), contains("the key of a row is NaN"));
  CHECK_THROWS_WITH(loaded<Gauges>(with_key(1.5)), contains("the key 1.5 is there twice"));
}

TEST_CASE("columns of a stranger's that are none, or one twice, are refused") {
  using Gauges = kf::Table<Gauge, kf::Key<&Gauge::key>>;
  Gauges gauges;
  gauges.insert({1.5, 2.5});
  const auto text = [](const std::string& content) {
    std::string size(4, '\0');
    size[0] = static_cast<char>(content.size());
    return size + content;
  };
  const auto with = [](const std::string& bytes, const std::string& old, const std::string& other) {
    const std::size_t at = bytes.find(old);
    REQUIRE(at != std::string::npos);
    return keyfold_test::spliced(bytes, at, old.size(), other);
  };
  CHECK_THROWS_WITH(loaded<Gauges>(with(saved(gauges), text("value"), text("key"))),
                    contains("the column 'key' is there twice"));

  const std::string orders = saved(some_orders());
  const std::string code = text("code");
  const std::string type = text("optional(int32)");
  REQUIRE(loaded<NewOrders>(orders).size() == 3);
  CHECK_THROWS_WITH(loaded<NewOrders>(with(orders, code + type, code + text("optional(int32),more:int32"))),
                    contains("the name or type of a column is none"));
  CHECK_THROWS_WITH(loaded<NewOrders>(with(orders, code + type, text("co,de:int8") + type)),
                    contains("is no type"));
}

TEST_CASE("a tag on version 0 keeps it in files, too") {
  Orders orders = some_orders();
  orders.tag("empty", 0);
  orders.expire(kf::keep_last(1));
  const std::string bytes = saved(orders);
  const Orders back = loaded<Orders>(bytes);
  CHECK(back.as_of("empty").empty());
  CHECK(back.as_of("before").size() == 2);
  CHECK_THROWS_AS(back.as_of(1), kf::VersionExpired);
  CHECK(saved(back) == bytes);
}

TEST_CASE("a table is not saved while it is written to") {
  Orders orders = some_orders();
  std::ostringstream out;
  const auto save = [&](const Order&, const Order&) {
    kf::save(orders, out);
    return true;
  };
  const std::vector<Order> rows(orders.begin(), orders.end());
  const auto version = orders.version();
  CHECK_THROWS_WITH(orders.merge(rows).when_matched(save).erase().execute(),
                    contains("in the middle of a write"));
  CHECK(orders.version() == version);
  const auto write = [&](std::uint64_t, std::uint64_t) {
    orders.clear();
    return true;
  };
  CHECK_THROWS_WITH(kf::save(orders, out, {.progress = write}), contains("wrote to the table"));
}

TEST_CASE("a file that has a column under its new name is not renamed again") {
  using Items = kf::Table<snapshot_rows::Item, kf::Key<&snapshot_rows::Item::number>>;
  Items items;
  items.insert({7, 1});
  const Items again = loaded<Items>(saved(items));
  REQUIRE(again.size() == 1);
  CHECK(again.find(7)->code == 1);
}

TEST_CASE("a device or a folder is not replaced by a snapshot") {
  const Directory directory;
  CHECK_THROWS_AS(kf::save(some_orders(), "/dev/null"), kf::IoError);
  CHECK(std::filesystem::is_character_file("/dev/null"));
  std::filesystem::create_directory(directory / "folder");
  CHECK_THROWS_AS(kf::save(some_orders(), directory / "folder"), kf::IoError);
  CHECK(directory.names() == std::set<std::string>{"folder"});
}

TEST_CASE("progress is told from nothing to all rows, and can cancel") {
  const Directory directory;
  const auto path = directory / "orders.kfs";
  kf::save(some_orders(), path);
  const std::string before = content_of(path);
  Orders many;
  std::vector<Order> rows(30000);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].id = static_cast<std::int64_t>(i);
  many.append(rows);

  std::vector<std::uint64_t> told;
  const auto listen = [&](std::uint64_t done, std::uint64_t all) {
    CHECK(all == 30000);
    told.push_back(done);
    return told.size() < 4;
  };
  CHECK_THROWS_AS(kf::save(many, path, {.progress = listen}), kf::Cancelled);
  CHECK(content_of(path) == before);
  CHECK(directory.names() == std::set<std::string>{"orders.kfs"});
  CHECK(told.size() == 4);

  const auto to_the_end = [&](std::uint64_t done, std::uint64_t) {
    told.push_back(done);
    return true;
  };
  told.clear();
  const std::string bytes = saved(many, {.progress = to_the_end});
  CHECK(told.front() == 0);
  CHECK(told.back() == 30000);
  CHECK(std::ranges::is_sorted(told));
  told.clear();
  CHECK(loaded<Orders>(bytes, {.progress = to_the_end}).size() == 30000);
  CHECK(told.front() == 0);
  CHECK(told.back() == 30000);
  CHECK(std::ranges::is_sorted(told));
  told.clear();
  CHECK_THROWS_AS(loaded<Orders>(bytes, {.progress = listen}), kf::Cancelled);
}

TEST_CASE("a file that is replaced keeps its permissions; a path that cannot be is an IoError") {
  const Directory directory;
  const auto path = directory / "orders.kfs";
  kf::save(Orders(), path);
  std::filesystem::permissions(path, std::filesystem::perms(0640));
  kf::save(some_orders(), path);
  CHECK(std::filesystem::status(path).permissions() == std::filesystem::perms(0640));
  try {
    kf::save(some_orders(), directory / "no" / "such.kfs");
    FAIL("it was saved");
  } catch (const kf::IoError& error) {
    CHECK(error.operation == "open");
    CHECK(error.code == std::errc::no_such_file_or_directory);
  }
  CHECK_THROWS_AS(kf::load<Orders>(directory / "none.kfs"), kf::IoError);
  CHECK_THROWS_AS(kf::load<Orders>(directory / "."), kf::IoError);
}

TEST_CASE("a file is saved by a relative path") {
  const Directory directory;
  std::filesystem::create_directory(directory / "inner");
  const Inside inside(directory / "inner");
  kf::save(some_orders(), "orders.kfs");
  kf::save(some_orders(), "../orders.kfs");
  CHECK(kf::load<Orders>(directory / "orders.kfs").size() == 3);
  CHECK(kf::load<Orders>("orders.kfs").size() == 3);
}

TEST_CASE("what another process of the same number has left is not overwritten, and in the end refused") {
  const Directory directory;
  const auto path = directory / "orders.kfs";
  const std::string left = path.string() + ".tmp-" + std::to_string(::getpid());
  std::ofstream(left) << "theirs";
  kf::save(some_orders(), path);
  CHECK(kf::load<Orders>(path).size() == 3);
  CHECK(content_of(left) == "theirs");
  CHECK(directory.names().size() == 2);
  for (int number = 1; number < 100; ++number) std::ofstream(left + '-' + std::to_string(number)) << "theirs";
  try {
    kf::save(Orders(), path);
    FAIL("it was saved");
  } catch (const kf::IoError& error) {
    CHECK(error.code == std::errc::file_exists);
  }
  CHECK(kf::load<Orders>(path).size() == 3);
  CHECK(directory.names().size() == 101);
}

TEST_CASE("a stream that fails is an IoError, whether or not it throws itself") {
  for (const bool throws : {false, true}) {
    std::ofstream full("/dev/full", std::ios::binary);
    if (throws) full.exceptions(std::ios::badbit | std::ios::failbit);
    CHECK_THROWS_AS(kf::save(some_orders(), full), kf::IoError);
    std::stringstream cut(saved(some_orders()).substr(0, 300));
    if (throws) cut.exceptions(std::ios::badbit | std::ios::failbit | std::ios::eofbit);
    CHECK_THROWS_AS(kf::load<Orders>(cut), kf::CorruptSnapshot);
  }
  for (const auto exceptions : {std::ios::goodbit, std::ios::badbit}) {
    BreakingBuffer breaking(saved(some_orders()).substr(0, 300));
    std::istream broken(&breaking);
    broken.exceptions(exceptions);
    try {
      static_cast<void>(kf::load<Orders>(broken));
      FAIL("it was loaded");
    } catch (const kf::IoError& error) {
      CHECK(error.operation == "read");
    }
  }
  PipeBuffer whole(saved(some_orders()));
  std::istream pipe(&whole);
  pipe.exceptions(std::ios::badbit | std::ios::failbit | std::ios::eofbit);
  CHECK(kf::load<Orders>(pipe).size() == 3);
  StuckBuffer stuck(saved(some_orders()));
  std::istream nowhere(&stuck);
  CHECK_THROWS_AS(kf::load<Orders>(nowhere), kf::IoError);
  std::ifstream missing("/no/such/file");
  CHECK_THROWS_AS(kf::load<Orders>(missing), kf::IoError);
}
