// Random programs of commits, restores, undos, tags, expiries and retention on a store that is opened again
// and again on the way, against a model that keeps every version.
#include <keyfold/store.hpp>

#include <utility>

#include "support/history_program.hpp"
#include "support/memory_disk.hpp"

namespace kf = keyfold;
using keyfold_test::Item;
using keyfold_test::MemoryDisk;
using keyfold_test::SharedDisk;

namespace {

// A store that looks like a table. A copy is what another process would read from the files.
template <class Table>
class StoredTable {
  using Store = kf::Store<Table, SharedDisk>;

 public:
  StoredTable() : StoredTable(kf::TableOptions{}) {}
  explicit StoredTable(kf::TableOptions options) : options_(std::move(options)) { open(); }
  StoredTable(const StoredTable& other)
      : options_(other.options_), disk_(std::make_unique<MemoryDisk>(other.disk_->copy())) {
    open();
  }
  StoredTable(StoredTable&&) noexcept = default;
  StoredTable& operator=(StoredTable other) noexcept {
    std::swap(options_, other.options_);
    std::swap(disk_, other.disk_);
    std::swap(store_, other.store_);
    return *this;
  }

  // Closes the store, or lets its process die, and opens it again.
  void reopen(bool cleanly) {
    if (cleanly) store_->close();
    disk_->die();
    store_.reset();
    disk_->kill();
    open();
  }
  void checkpoint() { store_->checkpoint(); }

  template <class Rows>
  auto merge(Rows&& rows) {
    return store_->merge(std::forward<Rows>(rows));
  }
  template <class Rows>
  auto append(Rows&& rows) {
    return store_->append(std::forward<Rows>(rows));
  }
  auto insert(const Item& row) { return store_->insert(row); }
  auto erase(int id) { return store_->erase(id); }
  auto clear() { return store_->clear(); }
  auto apply(const kf::ChangeSet<Item>& changes) { return store_->apply(changes); }
  auto metadata(std::string text) { return store_->metadata(std::move(text)); }
  auto once(std::string app, std::uint64_t number) { return store_->once(std::move(app), number); }
  template <class Point>
  auto restore(const Point& point) {
    return store_->restore(point);
  }
  auto undo(kf::Version version) { return store_->undo(version); }
  void tag(std::string name, kf::Version version) { store_->tag(std::move(name), version); }
  void untag(std::string_view name) { store_->untag(name); }
  template <class Rule>
  auto expire(const Rule& rule) {
    return store_->expire(rule);
  }
  template <class Rule>
  auto expire(const Rule& rule, kf::DryRun) const {
    return table().expire(rule, kf::dry_run);
  }

  auto size() const { return table().size(); }
  auto begin() const { return table().begin(); }
  auto end() const { return table().end(); }
  auto version() const { return table().version(); }
  auto history() const { return table().history(); }
  const auto& tags() const { return table().tags(); }
  auto last_applied(std::string_view app) const { return table().last_applied(app); }
  auto history_of(int id) const { return table().history_of(id); }
  auto diff(kf::Version from, kf::Version to) const { return table().diff(from, to); }
  template <class Point>
  auto as_of(const Point& point) const {
    return table().as_of(point);
  }
  template <class... Points>
  auto changes(const Points&... points) const {
    return table().changes(points...);
  }
  template <auto... Members>
  auto by() const {
    return table().template by<Members...>();
  }

 private:
  const Table& table() const { return store_->table(); }
  void open() {
    store_ = std::make_unique<Store>(SharedDisk{disk_.get()},
                                     kf::StoreOptions{.table = options_, .checkpoint_bytes = 6000});
  }

  kf::TableOptions options_;
  std::unique_ptr<MemoryDisk> disk_ = std::make_unique<MemoryDisk>();
  std::unique_ptr<Store> store_;  // last: it uses the disk
};

template <class Table>
void check_reopening(const std::string& description, bool ordered) {
  int turn = 0;
  keyfold_test::check_history_programs<StoredTable<Table>>(
      description, 400, ordered, [&](const StoredTable<Table>& table, const kf::TableOptions&) {
        StoredTable<Table> copy(table);
        if (++turn % 5 == 0) copy.checkpoint();
        copy.reopen(turn % 2 == 0);
        return copy;
      });
}

}  // namespace

TEST_CASE("a store in insertion order goes on after opening as if it had never been closed") {
  using Table = kf::Table<Item, kf::Key<&Item::id>, kf::UniqueBy<&Item::code>, kf::OrderedBy<&Item::group>>;
  check_reopening<Table>("reopening in insertion order", false);
}

TEST_CASE("a store in key order goes on after opening as if it had never been closed") {
  using Table =
      kf::Table<Item, kf::OrderedKey<&Item::id>, kf::UniqueBy<&Item::code>, kf::OrderedBy<&Item::group>>;
  check_reopening<Table>("reopening in key order", true);
}
