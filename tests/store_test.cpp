// What a store does when nothing goes wrong, and what it says when something does.
#include <keyfold/keyfold.hpp>
#include <keyfold/snapshot.hpp>
#include <keyfold/store.hpp>

#include <boost/describe.hpp>
#include <boost/serialization/version.hpp>

#include <chrono>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "support/catch.hpp"
#include "support/log_record.hpp"
#include "support/memory_disk.hpp"
#include "support/temporary_directory.hpp"

namespace kf = keyfold;
using namespace keyfold_test;

namespace store_rows {
struct OldPart {
  std::int32_t id = 0;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive & id;
  }
};
struct NewPart {
  std::int64_t id = 0;
  template <class Archive>
  void serialize(Archive& archive, unsigned version) {
    if (version > 0) {
      archive & id;
      return;
    }
    auto old = static_cast<std::int32_t>(id);
    archive & old;
    id = old;
  }
};
}  // namespace store_rows
BOOST_CLASS_VERSION(store_rows::NewPart, 1)

namespace {

struct Order {
  int id = 0;
  std::string item;
  std::optional<int> bin;
  bool operator==(const Order&) const = default;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, item, bin))

using Orders = kf::Table<Order, kf::Key<&Order::id>>;
using FileStore = kf::Store<Orders>;
using MemoryStore = kf::Store<Orders, SharedDisk>;

std::string saved(const Orders& table) {
  std::ostringstream out;
  kf::save(table, out);
  return std::move(out).str();
}

std::map<std::string, Bytes> files_of(const MemoryDisk& disk) {
  std::map<std::string, Bytes> files;
  for (const std::string& name : disk.list()) files[name] = disk.read(name);
  return files;
}

// A store with three commits, whose process has died.
void write_and_die(MemoryDisk& disk, kf::StoreOptions options = {}) {
  MemoryStore store(SharedDisk{&disk}, options);
  store.insert({1, "tea", 7});
  store.insert({2, "cup", {}});
  store.upsert({{1, "green tea", 7}, {3, "pot", 8}});
  disk.die();
}

template <class Call>
void expect_failed(Call call) {
  CHECK_THROWS_AS(call(), kf::StoreFailed);
}

}  // namespace

TEST_CASE("a store that is opened again has the same table: rows, history, times, tags and numbers") {
  const TemporaryDirectory directory;
  std::string before;
  {
    auto store = FileStore::open(directory.path / "orders");
    CHECK(store.table().empty());
    CHECK_FALSE(store.recovered().clean);
    store.append({{1, "tea", 7}, {2, "cup", {}}});
    store.once("loader", 5).upsert({{2, "big cup", 9}});
    store.metadata("by hand").erase(1);
    store.tag("audit", 2);
    auto transaction = store.transaction();
    transaction.insert({3, "pot", {}});
    transaction.insert({4, "lid", {}});
    transaction.commit();
    store.restore("audit");
    store.undo(5);
    before = saved(store.table());
    store.close();
  }
  auto store = FileStore::open(directory.path / "orders");
  CHECK(saved(store.table()) == before);
  CHECK(store.table().version() == 6);
  CHECK(store.table().tags().at("audit") == 2);
  CHECK(store.table().last_applied("loader") == 5);
  CHECK(store.recovered().clean);
  CHECK(store.recovered().replayed == 7);  // six commits and a tag
  CHECK(store.once("loader", 5).insert({9, "again", {}}).already_applied());
}

TEST_CASE("commits that are replayed share a text") {
  const TemporaryDirectory directory;
  std::size_t history = 0;
  std::size_t text = 0;
  {
    auto store = FileStore::open(directory.path / "orders", {.durability = kf::durability::buffered});
    for (int i = 0; i < 1000; ++i) store.upsert({i % 10, "tea", i});
    history = store.table().memory_usage().history;
    text = store.table().history()[0].parameters().size();
  }
  const auto store = FileStore::open(directory.path / "orders");
  const auto commits = store.table().history();
  CHECK(store.recovered().replayed == 1000);
  CHECK(commits[999].parameters().data() == commits[0].parameters().data());
  CHECK(store.table().memory_usage().history <= history + 3 * text);
}

TEST_CASE("a checkpoint replaces the log, and the next opening replays what came after it") {
  const TemporaryDirectory directory;
  std::string before;
  {
    auto store = FileStore::open(directory.path);
    for (int id = 0; id < 20; ++id) store.insert({id, "item", {}});
    store.checkpoint();
    store.insert({100, "later", {}});
    before = saved(store.table());
  }
  auto store = FileStore::open(directory.path);
  CHECK(saved(store.table()) == before);
  CHECK(store.recovered().replayed == 1);
  CHECK(std::filesystem::exists(directory.path / "snapshot-2"));
  CHECK_FALSE(std::filesystem::exists(directory.path / "snapshot-1"));
  CHECK_FALSE(std::filesystem::exists(directory.path / "log-1"));
}

TEST_CASE("a store takes checkpoints by itself when the log has outgrown the limit") {
  MemoryDisk disk;
  kf::StoreOptions options;
  options.checkpoint_bytes = 2000;
  options.table.retention = kf::keep_last(2);
  MemoryStore store(SharedDisk{&disk}, options);
  for (int round = 0; round < 200; ++round) {
    store.upsert({{round % 5, "item", round}});
    for (const auto& [name, bytes] : files_of(disk)) CHECK(bytes.size() < 4000);
  }
  CHECK(store.checkpoint_error() == nullptr);
  CHECK(store.verify().version == 200);
}

TEST_CASE("new directories are made, and files of others are left alone") {
  const TemporaryDirectory directory;
  const auto deep = directory.path / "a" / "b" / "";
  std::filesystem::create_directories(deep / "folder.tmp");
  // Names that no store gives: its numbers begin with 1, without zeros in front.
  const std::vector<std::string> others = {
      "notes.tmp", "log-0",      "log-01",    "log-1x",
      "log-",      "snapshot-0", "log-0.tmp", "log-99999999999999999999"};
  for (const std::string& name : others) std::ofstream(deep / name) << "mine";
  for (const std::size_t size : {0U, 1U}) {
    auto store = FileStore::open(deep);
    CHECK(store.table().size() == size);
    store.upsert({{1, "tea", {}}});
  }
  CHECK(std::filesystem::exists(deep / "folder.tmp"));
  for (const std::string& name : others) {
    INFO(name);
    CHECK(std::filesystem::file_size(deep / name) == 4);
  }
  CHECK(FileStore::open(directory.path / "x" / "y").table().empty());
}

TEST_CASE("a directory has one store at a time") {
  const TemporaryDirectory directory;
  auto store = FileStore::open(directory.path);
  try {
    auto second = FileStore::open(directory.path);
    FAIL("it was opened twice");
  } catch (const kf::StoreLocked& error) {
    CHECK(error.file == (directory.path / "LOCK").string());
  }
  CHECK_THROWS_AS(FileStore::salvage(directory.path, directory.path / "fresh"), kf::StoreLocked);
  store.insert({1, "tea", {}});
  auto moved = std::move(store);
  moved.insert({2, "cup", {}});
  {
    const auto gone = std::move(moved);
  }
  CHECK(FileStore::open(directory.path).table().size() == 2);
  auto closed = FileStore::open(directory.path);
  closed.close();
  CHECK(FileStore::open(directory.path).table().size() == 2);
  CHECK(closed.table().size() == 2);
  CHECK_THROWS_WITH(closed.insert({3, "mug", {}}), contains("was closed; open it again to write"));
}

TEST_CASE("after a kill everything is there, and the store is not clean") {
  MemoryDisk disk;
  write_and_die(disk, {.durability = kf::durability::buffered});
  disk.kill();
  const MemoryStore store(SharedDisk{&disk});
  CHECK_FALSE(store.recovered().clean);
  CHECK(store.recovered().replayed == 3);
  CHECK(store.recovered().torn_bytes == 0);
  CHECK(*store.table().find(1) == Order{1, "green tea", 7});
}

TEST_CASE("a torn tail is cut and reported") {
  MemoryDisk disk;
  write_and_die(disk);
  disk.kill();
  const std::size_t whole = disk.read("log-1").size();
  disk.contents("log-1").resize(whole - 1);
  const MemoryStore store(SharedDisk{&disk});
  CHECK(store.table().version() == 2);
  CHECK(store.recovered().torn_file == "log-1");
  CHECK(store.recovered().torn_offset + store.recovered().torn_bytes == whole - 1);
  CHECK(store.recovered().torn_bytes > 32);
  CHECK(store.verify().version == 2);
}

TEST_CASE("damage is an error that names the place, and changes nothing on disk") {
  MemoryDisk disk;
  write_and_die(disk);
  disk.kill();
  disk.contents("log-1")[60] ^= std::byte{1};
  const auto before = files_of(disk);
  try {
    const MemoryStore store(SharedDisk{&disk});
    FAIL("it was believed");
  } catch (const kf::CorruptJournal& error) {
    CHECK(error.file == "log-1");
    CHECK(error.offset == 52);
  }
  CHECK(files_of(disk) == before);
}

TEST_CASE("salvage copies what precedes the damage into a new store") {
  MemoryDisk disk;
  MemoryDisk fresh(3);
  write_and_die(disk);
  disk.kill();
  // The second frame begins where the first one, of 32 bytes and its payload, ends.
  const std::size_t second =
      52 + 32 + keyfold::detail::load_number<std::uint32_t>(disk.read("log-1").data() + 56);
  disk.contents("log-1")[second + 40] ^= std::byte{1};
  const auto before = files_of(disk);
  const kf::Salvaged salvaged = MemoryStore::salvage(SharedDisk{&disk}, SharedDisk{&fresh});
  CHECK(salvaged.version == 1);
  REQUIRE(salvaged.damage);
  CHECK(salvaged.damage->offset == second);
  CHECK(salvaged.left_behind == 2);  // the damaged commit has a good header
  CHECK(files_of(disk) == before);
  const MemoryStore store(SharedDisk{&fresh});
  CHECK(store.recovered().clean);
  CHECK(store.table().size() == 1);
  CHECK(*store.table().find(1) == Order{1, "tea", 7});
  CHECK_THROWS_AS(MemoryStore::salvage(SharedDisk{&disk}, SharedDisk{&fresh}), kf::Error);
}

TEST_CASE("a salvage tells how much is missing where the end of the log, or all of it, is") {
  MemoryDisk disk;
  {
    MemoryStore store(SharedDisk{&disk});
    store.insert({1, "tea", 7});
    store.checkpoint();
    store.insert({2, "cup", 8});
    store.tag("second", 2);
    store.insert({3, "jug", 9});
  }
  SECTION("the end") {
    disk.contents("log-2").resize(52);
    MemoryDisk fresh;
    const kf::Salvaged salvaged = MemoryStore::salvage(SharedDisk{&disk}, SharedDisk{&fresh});
    CHECK(salvaged.version == 1);
    CHECK(salvaged.left_behind == 3);
  }
  SECTION("all of it") {
    SharedDisk{&disk}.remove("log-2");
    MemoryDisk fresh;
    CHECK_THROWS_AS(MemoryStore(SharedDisk{&disk}), kf::CorruptJournal);
    const kf::Salvaged salvaged = MemoryStore::salvage(SharedDisk{&disk}, SharedDisk{&fresh});
    CHECK(salvaged.version == 1);
    REQUIRE(salvaged.damage);
    CHECK(salvaged.damage->file == SharedDisk{&disk}.path("log-2"));
    CHECK(MemoryStore(SharedDisk{&fresh}).table().size() == 1);
  }
}

TEST_CASE("a salvage needs a store, and a directory without one") {
  const TemporaryDirectory directory;
  const auto refused = [&](const char* from, const char* to) -> std::pair<std::string, std::error_code> {
    try {
      FileStore::salvage(directory.path / from, directory.path / to);
      return {};
    } catch (const kf::IoError& error) {
      return {error.operation, error.code};
    }
  };
  std::filesystem::create_directory(directory.path / "empty");
  FileStore::open(directory.path / "store").insert({1, "tea", 7});
  FileStore::open(directory.path / "other").insert({2, "cup", 7});
  using Refusal = std::pair<std::string, std::error_code>;
  const auto not_there = std::make_error_code(std::errc::no_such_file_or_directory);
  CHECK(refused("none", "fresh") == Refusal("open", not_there));
  CHECK_FALSE(std::filesystem::exists(directory.path / "none"));
  CHECK(refused("empty", "fresh") == Refusal("salvage", not_there));
  CHECK(refused("store", "other") == Refusal("salvage into", std::make_error_code(std::errc::file_exists)));
  CHECK(FileStore::open(directory.path / "other").table().contains(2));
  CHECK(FileStore::salvage(directory.path / "store", directory.path / "empty").version == 1);
}

TEST_CASE("a failed fsync leaves the commit in doubt and ends writing, and reading goes on") {
  MemoryDisk disk;
  {
    MemoryStore store(SharedDisk{&disk});
    store.insert({1, "tea", {}});
    disk.short_writes = false;
    disk.schedule(MemoryDisk::Fault::error, 1);  // the write is operation 0
    CHECK_THROWS_AS(store.insert({2, "cup", {}}), kf::CommitInDoubt);
    CHECK(store.table().size() == 1);
    CHECK(store.table().version() == 1);
    CHECK(store.table().history().size() == 1);
    expect_failed([&] { store.insert({3, "pot", {}}); });
    expect_failed([&] { store.tag("t", 1); });
    expect_failed([&] { store.sync(); });
    expect_failed([&] { store.checkpoint(); });
    expect_failed([&] { store.close(); });
    CHECK(store.table().tags().empty());
    CHECK(*store.table().find(1) == Order{1, "tea", {}});
  }
  disk.kill();
  const MemoryStore store(SharedDisk{&disk});
  CHECK(store.table().version() >= 1);
  CHECK(store.table().version() <= 2);
}

TEST_CASE("a write that the disk does not take is not made, and the next one is") {
  MemoryDisk disk;
  MemoryStore store(SharedDisk{&disk});
  store.insert({1, "tea", {}});
  const std::string before = saved(store.table());
  disk.schedule(MemoryDisk::Fault::error, 0);
  try {
    store.insert({2, "cup", {}});
    FAIL("it was made");
  } catch (const kf::CommitInDoubt&) {
    FAIL("it is in doubt");
  } catch (const kf::IoError& error) {
    CHECK(error.operation == "write");
    CHECK(error.file == "log-1");
  }
  CHECK(saved(store.table()) == before);
  store.insert({3, "pot", {}});
  CHECK(store.verify().version == 2);
  disk.die();
  disk.kill();
}

TEST_CASE("durable_version() tells what a cut of power cannot reach") {
  MemoryDisk disk;
  MemoryStore every(SharedDisk{&disk});
  every.insert({1, "tea", {}});
  every.tag("t", 1);
  CHECK(every.durable_version() == 1);

  MemoryDisk other_disk;
  MemoryStore buffered(SharedDisk{&other_disk}, {.durability = kf::durability::buffered});
  buffered.insert({1, "tea", {}});
  buffered.tag("t", 1);
  buffered.insert({2, "cup", {}});
  CHECK(buffered.durable_version() == 0);
  buffered.sync();
  CHECK(buffered.durable_version() == 2);
  buffered.insert({3, "pot", {}});
  CHECK(buffered.durable_version() == 2);
  buffered.checkpoint();
  CHECK(buffered.durable_version() == 3);
}

TEST_CASE("interval brings commits to the medium by itself") {
  const TemporaryDirectory directory;
  auto store =
      FileStore::open(directory.path, {.durability = kf::durability::interval(std::chrono::milliseconds(5))});
  for (int id = 0; id < 10; ++id) store.insert({id, "item", {}});
  for (int wait = 0; wait < 2000 && store.durable_version() != 10; ++wait)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(store.durable_version() == 10);
}

TEST_CASE("verify() reads the files again and finds what has happened to them") {
  MemoryDisk disk;
  MemoryStore store(SharedDisk{&disk});
  store.insert({1, "tea", {}});
  store.insert({2, "cup", {}});
  const kf::Verified verified = store.verify();
  CHECK(verified.version == 2);
  CHECK(verified.log_bytes == disk.read("log-1").size());
  CHECK(verified.snapshot_bytes == disk.read("snapshot-1").size());
  const Bytes intact = disk.read("log-1");
  disk.contents("log-1")[60] ^= std::byte{1};
  CHECK_THROWS_AS(store.verify(), kf::CorruptJournal);
  disk.contents("log-1")[60] ^= std::byte{1};
  disk.contents("log-1").resize(disk.read("log-1").size() - 1);
  CHECK_THROWS_AS(store.verify(), kf::CorruptJournal);
  disk.contents("log-1") = intact;
  CHECK(store.verify().version == 2);
  disk.contents("log-1").push_back(std::byte{0});
  CHECK_THROWS_AS(store.verify(), kf::CorruptJournal);
  disk.die();
}

TEST_CASE("closing ends writing, but not reading") {
  MemoryDisk disk;
  MemoryStore store(SharedDisk{&disk});
  store.insert({1, "tea", {}});
  store.close();
  store.close();
  expect_failed([&] { store.insert({2, "cup", {}}); });
  CHECK(store.table().size() == 1);
}

TEST_CASE("retention holds for what is stored, and tags keep their versions") {
  MemoryDisk disk;
  kf::StoreOptions options;
  options.table.retention = kf::keep_last(3);
  {
    MemoryStore store(SharedDisk{&disk}, options);
    for (int id = 0; id < 4; ++id) store.insert({id, "item", {}});
    store.tag("four", 4);
    for (int id = 4; id < 10; ++id) store.insert({id, "item", {}});
    disk.die();
  }
  disk.kill();
  const MemoryStore store(SharedDisk{&disk}, options);
  CHECK(store.table().history().size() == 4);
  CHECK(store.table().as_of("four").size() == 4);
  CHECK(store.table().as_of(8).size() == 8);
  CHECK_THROWS_AS(store.table().as_of(7), kf::VersionExpired);
}

TEST_CASE("a retention by time finds nothing to let go of in a store without commits") {
  MemoryDisk disk;
  kf::StoreOptions options;
  options.table.retention = kf::keep_for(std::chrono::hours(1));
  for (int opened = 0; opened < 2; ++opened) {
    MemoryStore store(SharedDisk{&disk}, options);
    CHECK(store.table().version() == 0);
    CHECK(store.table().as_of(0).empty());
  }
  MemoryStore(SharedDisk{&disk}, options).insert({1, "tea", {}});
  CHECK(MemoryStore(SharedDisk{&disk}, options).table().as_of(0).empty());
}

TEST_CASE("a write that changes nothing costs no frame, and a transaction costs one") {
  MemoryDisk disk;
  {
    MemoryStore store(SharedDisk{&disk});
    store.insert({1, "tea", {}});
    store.upsert({{1, "tea", {}}});
    store.erase(77);
    auto transaction = store.transaction();
    for (int id = 10; id < 20; ++id) transaction.insert({id, "item", {}});
    transaction.commit();
    disk.die();
  }
  disk.kill();
  const MemoryStore store(SharedDisk{&disk});
  CHECK(store.recovered().replayed == 2);
  CHECK(store.table().size() == 11);
}

// --- Rows that have changed since

namespace {

namespace later {
struct Order {
  int id = 0;
  std::string item;
  std::optional<int> bin;
  double price = 5;
  bool operator==(const Order&) const = default;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, item, bin, price))
}  // namespace later

namespace renamed {
struct Order {
  int id = 0;
  std::string item;
  std::optional<int> place;
  bool operator==(const Order&) const = default;
};
BOOST_DESCRIBE_STRUCT(Order, (), (id, item, place))
}  // namespace renamed

using RenamedStore = kf::Store<kf::Table<renamed::Order, kf::Key<&renamed::Order::id>>, SharedDisk>;
using LaterOrders = kf::Table<later::Order, kf::Key<&later::Order::id>>;
using LaterStore = kf::Store<LaterOrders, SharedDisk>;
using UniqueStore = kf::Store<kf::Table<Order, kf::Key<&Order::id>, kf::UniqueBy<&Order::item>>, SharedDisk>;

}  // namespace

TEST_CASE("a column that is new gets its default in the snapshot and in the log, and the log begins anew") {
  MemoryDisk disk;
  {
    MemoryStore store(SharedDisk{&disk});
    store.insert({1, "tea", 7});
    store.checkpoint();
    store.insert({2, "cup", {}});
    store.erase(1);
    disk.die();
  }
  disk.kill();
  {
    LaterStore store(SharedDisk{&disk});
    CHECK(store.table().size() == 1);
    CHECK(*store.table().find(2) == later::Order{2, "cup", {}, 5});
    CHECK(*store.table().as_of(1).find(1) == later::Order{1, "tea", 7, 5});
    store.insert({3, "pot", {}, 9});
    disk.die();
  }
  disk.kill();
  const LaterStore store(SharedDisk{&disk});
  CHECK(store.recovered().replayed == 1);
  CHECK(*store.table().find(3) == later::Order{3, "pot", {}, 9});
}

TEST_CASE("a column that the program no longer has is skipped in the snapshot and in the log") {
  MemoryDisk disk;
  {
    LaterStore store(SharedDisk{&disk});
    store.insert({2, "cup", 4, 8});
    store.checkpoint();
    store.insert({3, "pot", {}, 9});
    store.erase(2);
    disk.die();
  }
  disk.kill();
  const MemoryStore store(SharedDisk{&disk});
  CHECK(store.table().size() == 1);
  CHECK(*store.table().find(3) == Order{3, "pot", {}});
  CHECK(*store.table().as_of(1).find(2) == Order{2, "cup", 4});
}

TEST_CASE("a column that may have been renamed is a SchemaMismatch, and nothing is changed") {
  MemoryDisk disk;
  {
    MemoryStore store(SharedDisk{&disk});
    store.insert({3, "pot", 9});
    disk.die();
  }
  disk.kill();
  const auto before = files_of(disk);
  try {
    const RenamedStore store(SharedDisk{&disk});
    FAIL("it was opened");
  } catch (const kf::SchemaMismatch& error) {
    CHECK(error.column == "bin");
    CHECK(error.program == "no such column, but a column 'place' that the file has not");
    CHECK_THAT(error.what(), contains("renamed") && contains("dropped"));
  }
  CHECK(files_of(disk) == before);
}

TEST_CASE("a class that has changed its key since the log was written needs a checkpoint first") {
  using OldParts = kf::Store<kf::Table<store_rows::OldPart, kf::Key<&store_rows::OldPart::id>>, SharedDisk>;
  using NewParts = kf::Store<kf::Table<store_rows::NewPart, kf::Key<&store_rows::NewPart::id>>, SharedDisk>;
  MemoryDisk disk;
  {
    OldParts store(SharedDisk{&disk});
    store.append(std::vector<store_rows::OldPart>{{1}, {2}});
    store.erase(1);
  }
  const auto before = files_of(disk);
  CHECK_THROWS_AS(NewParts(SharedDisk{&disk}), kf::SchemaMismatch);
  CHECK(files_of(disk) == before);
  OldParts(SharedDisk{&disk}).checkpoint();
  const NewParts store(SharedDisk{&disk});
  CHECK(store.table().size() == 1);
  CHECK(store.table().contains(2));
  CHECK(store.table().as_of(1).size() == 2);
}

TEST_CASE("a unique index that the stored rows do not allow is refused, and nothing is changed") {
  MemoryDisk disk;
  {
    MemoryStore store(SharedDisk{&disk});
    store.insert({1, "tea", {}});
    store.insert({2, "tea", {}});
    disk.die();
  }
  disk.kill();
  const auto before = files_of(disk);
  CHECK_THROWS_AS(UniqueStore(SharedDisk{&disk}), kf::UniqueViolation);
  MemoryDisk fresh;
  CHECK_THROWS_AS(UniqueStore::salvage(SharedDisk{&disk}, SharedDisk{&fresh}), kf::UniqueViolation);
  CHECK(files_of(disk) == before);
  CHECK(MemoryStore(SharedDisk{&disk}).table().size() == 2);
}

TEST_CASE("a commit carries a key of several parts, a key that changes, and rows in key order") {
  using Table = kf::Table<Order, kf::OrderedKey<&Order::item, &Order::id>, kf::OrderedBy<&Order::bin>>;
  MemoryDisk disk;
  const auto ids = [](const Table& table) {
    std::vector<int> out;
    for (const Order& order : table) out.push_back(order.id);
    return out;
  };
  {
    kf::Store<Table, SharedDisk> store(SharedDisk{&disk});
    store.append({{1, "b", {}}, {2, "a", 4}, {3, "c", 2}});
    store.merge(std::vector<Order>{})
        .when_not_matched_by_source(kf::target<&Order::id> == 3)
        .update(kf::target<&Order::item> = std::string("aa"))
        .execute();
    store.erase("b", 1);
    CHECK(ids(store.table()) == std::vector<int>{2, 3});
    disk.die();
  }
  disk.kill();
  const kf::Store<Table, SharedDisk> store(SharedDisk{&disk});
  CHECK(ids(store.table()) == std::vector<int>{2, 3});
  CHECK(store.table().history()[1].changes().begin()->kind() == kf::ChangeKind::update);
  CHECK(store.table().as_of(1).contains("c", 3));
}

// --- Logs of strangers: the frames are good, and what they say is not

namespace {

LogRecord change(LogRecord record, std::uint8_t kind) { return record.number(kind); }
LogRecord insert(LogRecord record, int id) {
  return change(std::move(record), 1).number(id).text("mug").number(std::uint8_t{0});
}
LogRecord update(LogRecord record, int id) {
  return change(std::move(record), 2).number(id).text("mug").number(std::uint8_t{0});
}
LogRecord erase(LogRecord record, int id) { return change(std::move(record), 4).number(id); }

}  // namespace

TEST_CASE("a record that does not fit what is before it is damage that names its place") {
  MemoryDisk written;
  {
    MemoryStore store(SharedDisk{&written});
    store.append({{1, "tea", 7}, {2, "cup", {}}});
    store.tag("first", 1);
    store.insert({3, "pot", {}});
    store.close();
  }
  const auto none = std::uint8_t{0};
  const std::vector<std::pair<LogRecord, std::string>> records = {
      {LogRecord(2, 7).text("t").number(std::uint64_t{1}), "its oldest version cannot be"},
      {commit_record(4), "its version is not the next one"},
      {commit_record(3, {}, true, 0), "it is older than the commit before it"},
      {insert(commit_record(3, {.inserted = 1}), 1), "update the row that is there"},
      {insert(insert(commit_record(3, {.inserted = 2}), 9), 9), "update the row that is there"},
      {update(commit_record(3, {.updated = 1, .matched_updated = 1}), 9), "a row that is not there"},
      {erase(commit_record(3, {.deleted = 1, .matched_deleted = 1}), 9), "a row that is not there"},
      {update(update(commit_record(3, {.updated = 2, .matched_updated = 2}), 1), 1), "changes a row twice"},
      {change(commit_record(3), 9), "an unknown kind"},
      {insert(commit_record(3, {.inserted = 2}), 9), "its counts are not those of its changes"},
      {update(commit_record(3), 1), "its counts are not those of its changes"},
      {update(commit_record(3, {.updated = 1}), 1), "its counts are not those of its changes"},
      {erase(commit_record(3), 1), "its counts are not those of its changes"},
      {erase(commit_record(3, {.deleted = 1}), 1), "its counts are not those of its changes"},
      {LogRecord(2).text("t").number(std::uint64_t{3}), "a version that cannot be read"},
      {LogRecord(2).text("first").number(std::uint64_t{2}), "a tag that is there"},
      {LogRecord(2).text("t").number(std::uint64_t{2}).number(none), "more is there than was told"},
      {LogRecord(2).text("t").number(none), "end"},
      {LogRecord(3).text("second"), "a tag that is not there"},
      {LogRecord(4).number(std::uint64_t{3}), "versions go that are not there"}};
  for (const auto& [record, message] : records) {
    INFO(message);
    MemoryDisk disk = written.copy();
    const std::size_t place = append_to_log(disk, record);
    const auto before = files_of(disk);
    try {
      const MemoryStore store(SharedDisk{&disk});
      FAIL("it was believed");
    } catch (const kf::CorruptJournal& error) {
      CHECK(error.file == "log-1");
      CHECK(error.offset == place);
      CHECK_THAT(error.what(), contains(message));
    }
    CHECK(files_of(disk) == before);
    MemoryDisk fresh;
    const kf::Salvaged salvaged = MemoryStore::salvage(SharedDisk{&disk}, SharedDisk{&fresh});
    CHECK(salvaged.version == 2);
    CHECK(salvaged.damage->offset == place);
    CHECK(MemoryStore(SharedDisk{&fresh}).table().size() == 3);
  }
}

TEST_CASE("records that fit are carried out, and those of unknown kinds refused with both numbers") {
  MemoryDisk disk;
  {
    MemoryStore store(SharedDisk{&disk});
    store.append({{1, "tea", 7}, {2, "cup", {}}});
    store.insert({3, "pot", {}});
    store.close();
  }
  kf::Metrics metrics{.source_rows = 2, .inserted = 1, .matched_updated = 1};
  metrics.updated = 1;
  append_to_log(disk, update(insert(commit_record(3, metrics), 9), 2));
  append_to_log(disk, LogRecord(2).text("ours").number(std::uint64_t{2}));
  append_to_log(disk, LogRecord(4).number(std::uint64_t{3}));
  {
    const MemoryStore store(SharedDisk{&disk});
    CHECK(store.table().version() == 3);
    CHECK(*store.table().find(2) == Order{2, "mug", {}});
    CHECK(*store.table().find(9) == Order{9, "mug", {}});
    CHECK(store.table().as_of("ours").size() == 3);
    CHECK_THROWS_AS(store.table().as_of(1), kf::VersionExpired);
  }
  MemoryDisk older = disk.copy();
  append_to_log(older, LogRecord(3, 2).text("ours"));
  CHECK_THROWS_WITH(MemoryStore(SharedDisk{&older}), contains("its oldest version cannot be"));
  append_to_log(disk, LogRecord(6, 3));
  try {
    const MemoryStore store(SharedDisk{&disk});
    FAIL("it was believed");
  } catch (const kf::UnsupportedFormat& error) {
    CHECK(error.found == 6);
    CHECK(error.known == 5);
  }
}
