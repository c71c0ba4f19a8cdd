// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/apply.hpp>
#include <keyfold/detail/chunks.hpp>
#include <keyfold/detail/core.hpp>
#include <keyfold/detail/expiry.hpp>
#include <keyfold/detail/schema.hpp>
#include <keyfold/detail/sequence_reader.hpp>
#include <keyfold/detail/snapshot_writer.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Reading a table with its history into a core that nobody sees before it is whole. Checksums only tell that
/// bytes are those that were written; so everything that later code relies on is checked besides.
namespace keyfold::detail {

template <class CoreType, class Source>
class SnapshotReader {
 public:
  using Row = typename CoreType::RowType;
  using Entry = LogEntry<Row>;
  using Block = LogBlock<Row>;

  SnapshotReader(Source& source, std::string file, TableOptions options, const Progress& progress)
      : core_(std::make_unique<CoreType>(std::move(options), &detail::apply_retention<CoreType>)),
        log_(*core_->log),
        progress_(progress),
        chunks_(source, std::move(file)) {}

  std::unique_ptr<CoreType> run() {
    try {
      read();
      return std::move(core_);
    } catch (const DecodeError& error) {
      throw CorruptSnapshot(chunks_.file(), chunks_.offset_of(error.offset), error.what());
    }
  }

 private:
  struct Header {
    std::uint64_t latest, oldest, retired, records, entries, rows, tags, applied;
    bool empty_version_pinned;
  };

  /// An entry, by its number, and what it says of the one below it.
  struct Link {
    std::size_t entry;
    std::uint64_t older;
  };

  static constexpr std::size_t least_entry = 9;       // kind, older
  static constexpr std::size_t least_remembered = 5;  // without the key
  static constexpr std::uint64_t min_keys_at_once = 65536;

  void read() {
    read_header();
    read_log();
    link_entries();
    check_log();
    read_rows();
    find_graves();
    check_secondaries(std::make_index_sequence<std::tuple_size_v<typename CoreType::Indexes>>());
    read_names();
    read_remembered();
    chunks_.finish();
    core_->subscribers->skip_to(log_.latest());
  }

  ByteReader& element() {
    in_ = &chunks_.element();
    return *in_;
  }
  [[noreturn]] void fail(const std::string& what_is_wrong) const { in_->fail(what_is_wrong); }
  [[noreturn]] [[gnu::noinline]] void fail(const char* what_is_wrong) const { in_->fail(what_is_wrong); }
  void require(bool holds, const char* what_is_wrong) const {
    if (!holds) fail(what_is_wrong);
  }

  // A number of things that take so many bytes each, at the least.
  std::uint64_t get_number_of_things(std::size_t bytes) {
    const std::uint64_t count = detail::get_u64(*in_);
    require(count <= chunks_.left() / bytes, "more is told than the bytes can hold");
    return count;
  }

  std::optional<Timestamp> get_time() {
    const bool is_there = detail::get_flag(*in_);
    const auto time = get_timestamp();
    return is_there ? std::optional(time) : std::nullopt;
  }
  Timestamp get_timestamp() { return Timestamp(Timestamp::duration(detail::get_number<std::int64_t>(*in_))); }

  // --- The header

  void read_header() {
    in_ = &chunks_.header();
    ByteReader& in = *in_;
    const StoredSchema schema = detail::get_schema(in);
    rows_.emplace(schema);
    check_key(in, schema);
    header_.latest = detail::get_u64(in);
    header_.oldest = log_.oldest = detail::get_u64(in);
    header_.empty_version_pinned = detail::get_flag(in);
    log_.first_commit = get_time();
    log_.last_expired = get_time();
    core_->next_order = detail::get_u64(in);
    header_.retired = get_number_of_things(2 * sizeof(std::uint64_t));
    header_.records = get_number_of_things(1);
    header_.entries = get_number_of_things(least_entry);
    header_.rows = get_number_of_things(2 * sizeof(std::uint64_t) + rows_->least_size());
    header_.tags = get_number_of_things(12);
    header_.applied = get_number_of_things(12);
    remembered_.read_header(in, *rows_);
    require(remembered_.size() <= chunks_.left() / least_remembered, "more is told than the bytes can hold");
    require(in.left() == 0, "more is there than was told");
    require(header_.oldest <= header_.latest, "its oldest version is later than its latest");
    require(header_.latest < std::uint64_t{1} << 60U, "a version is too large");
    require(core_->next_order < std::uint64_t{1} << 60U, "a row's place in their order is too large");
  }

  void check_key(ByteReader& in, const StoredSchema& schema) {
    const bool ordered = detail::get_flag(in);
    std::vector<std::string> names;
    std::uint32_t count = detail::get_u32(in);
    for (; count > 0; --count)
      names.emplace_back(detail::name_now<Row>(detail::get_text(in), detail::has_column(schema)));
    const auto present = detail::key_names(typename CoreType::KeyParts{});
    if (ordered == CoreType::ordered && names == present) return;
    throw SchemaMismatch("<key>", key_text(ordered, names), key_text(CoreType::ordered, present),
                         "load it into a table with the key it has, and append its rows to the other one");
  }
  static std::string key_text(bool ordered, const std::vector<std::string>& names) {
    std::string out;
    for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
    return (ordered ? "OrderedKey(" : "Key(") + out + ')';
  }

  // --- The log

  void read_log() {
    entries_.reserve(header_.entries);
    log_.retired.reserve(header_.retired);
    for (std::uint64_t i = 0; i < header_.retired; ++i) {
      element();
      log_.retired.push_back(read_block(std::nullopt));
    }
    for (std::uint64_t i = 0; i < header_.records; ++i) {
      read_record();
      CommitRecord<Row>& record = log_.records.back();
      record.block = read_block(record.version);
      record.has_changes = record.version >= log_.oldest;
      require(record.has_changes || record.block.first() == nullptr, "an expired version has changes");
      log_.record_bytes += record.block.bytes();
    }
    for (const Block& block : log_.retired) log_.swept += block.bytes();
    if (entries_.size() != header_.entries) chunks_.fail("it has another number of changes than was told");
  }

  void read_record() {
    ByteReader& in = element();
    CommitRecord<Row> record;
    record.version = detail::get_u64(in);
    record.timestamp = get_timestamp();
    record.operation = stored_operation(detail::get_text(in));
    record.parameters = get_parameters();
    if (detail::get_flag(in)) record.metadata = SharedText(std::string(detail::get_text(in)));
    Metrics metrics;
    for (const auto field : metric_fields) metrics.*field = static_cast<std::size_t>(detail::get_u64(in));
    record.metrics = metrics;
    record.table_size = static_cast<std::size_t>(detail::get_u64(in));
    log_.records.push_back(std::move(record));
  }

  std::string_view stored_operation(std::string_view text) {
    for (const auto& known : log_.operations) {
      if (*known == text) return *known;
    }
    require(log_.operations.size() < 256, "its commits have too many operations");
    return *log_.operations.emplace_back(std::make_shared<const std::string>(text));
  }

  SharedText get_parameters() {
    switch (static_cast<ParametersAre>(detail::get_u8(*in_))) {
      case ParametersAre::absent:
        return {};
      case ParametersAre::text:
        return parameters_ = SharedText(std::string(detail::get_text(*in_)));
      case ParametersAre::those_before:
        require(static_cast<bool>(parameters_), "parameters refer to others that are not there");
        return parameters_;
    }
    fail("parameters have an unknown form");
  }

  // A block of a commit has its version; in a retired one each entry has its own.
  Block read_block(std::optional<Version> version) {
    std::uint64_t bare = get_number_of_things(least_entry);
    std::uint64_t images = get_number_of_things(least_entry + rows_->least_size());
    require(bare + images <= header_.entries - entries_.size(), "it has more changes than was told");
    const bool has_bare = bare > 0;  // some of which may be smaller, as first entries
    Block block(has_bare ? scratch_ : log_.arena, {.bare = bare, .images = images});
    const std::size_t first = entries_.size();
    while (bare + images > 0) read_entry(block, version, bare, images);
    check_key_changes(first);
    return !has_bare || may_stay(block) ? std::move(block) : settle(block, first);
  }

  // A copy of a block of little but images takes more memory than it saves.
  static bool may_stay(const Block& block) noexcept {
    const std::size_t unused = block.bytes() - Block::bytes_of(block.counts());
    return Arena::has_own_segment(block.bytes()) && unused <= block.bytes() / 8;
  }

  Block settle(Block& block, std::size_t number) {
    Block settled(log_.arena, block.counts());
    for (Entry* entry = block.first(); entry != nullptr; entry = block.next(entry))
      entries_[number++] = settled.take_over(*entry);
    return settled;
  }

  void read_entry(Block& block, std::optional<Version> block_version, std::uint64_t& bare,
                  std::uint64_t& images) {
    ByteReader& in = element();
    const std::uint8_t number = detail::get_u8(in);
    require(number <= static_cast<std::uint8_t>(LogKind::rekey_in), "a change has an unknown kind");
    const auto kind = static_cast<LogKind>(number);
    const std::uint64_t older = detail::get_u64(in);
    if (older != 0) links_.push_back({entries_.size(), older});
    const Version version = block_version ? *block_version : detail::get_u64(in);
    require(version > 0 && (block_version || version < log_.oldest), "a change has an impossible version");
    const bool has_before = kind != LogKind::insert && kind != LogKind::rekey_in;
    const bool leaves_row = kind != LogKind::erase && kind != LogKind::rekey_out;
    const std::uint64_t order = leaves_row ? 0 : get_order();
    std::uint64_t& left = has_before ? images : bare;
    require(left > 0, "a commit has more changes than was told");
    --left;
    const bool is_first = kind == LogKind::insert && older == 0;
    Entry* const entry = has_before ? block.add(kind, version, nullptr, get_row())
                         : is_first ? block.add_first(version)
                                    : block.add(kind, version, nullptr);
    if (!leaves_row) entry->set_order(order);
    entries_.push_back(entry);
  }

  std::uint64_t get_order() {
    const std::uint64_t order = detail::get_u64(*in_);
    require(order < core_->next_order, "a row has a place beyond the last one");
    return order;
  }

  Holder<Row> get_row() {
    Row row{};
    if (decoder_ == nullptr) decoder_ = std::make_unique<Decoder>(*in_);
    rows_->read(*decoder_, row);
    if (detail::is_nan(CoreType::key_of(row))) fail("the key of a row is NaN");
    return Holder<Row>(std::move(row));
  }

  // A row leaves its key and arrives at another one in two entries, one after the other.
  void check_key_changes(std::size_t first) const {
    for (std::size_t i = first; i <= entries_.size(); ++i) {
      const bool arrives = i < entries_.size() && entries_[i]->kind() == LogKind::rekey_in;
      const bool left = i > first && entries_[i - 1]->kind() == LogKind::rekey_out;
      require(arrives == left, "half of a key change is missing");
    }
  }

  // --- Chains

  Entry* take_below(std::uint64_t reference) {
    require(reference <= entries_.size(), "a change is referred to that is not there");
    const std::size_t number = static_cast<std::size_t>(reference) - 1;
    require(!reached_[number], "a change is referred to twice");
    reached_[number] = true;
    return entries_[number];
  }

  // An end of a life can stand below a row only where expiry took what was between.
  bool may_stand_below_row(const Entry& entry) const noexcept {
    return entry.leaves_row() || entry.version() < log_.oldest;
  }

  void link_entries() {
    reached_.resize(entries_.size());
    for (const Link& link : links_) {
      Entry& entry = *entries_[link.entry];
      Entry& older = *take_below(link.older);
      if (entry.has_before()) {
        require(older.version() < entry.version() && may_stand_below_row(older),
                "changes of a key do not fit");
      } else {
        require(older.version() <= entry.version() && !older.leaves_row(), "changes of a key do not fit");
      }
      entry.set_older(&older);
      if (older.leaves_row()) older.set_newer(&entry);
    }
    links_ = {};
  }

  void check_log() {
    const auto& records = log_.records;
    if (header_.empty_version_pinned) log_.pinned.push_back(0);
    Version expected = std::max<Version>(log_.oldest, 1);  // from here on there is one for each version
    for (std::size_t i = 0; i < records.size(); ++i) {
      const CommitRecord<Row>& record = records[i];
      if (i > 0) {
        require(record.version > records[i - 1].version, "versions do not ascend");
        require(record.timestamp >= records[i - 1].timestamp, "times do not ascend");
      }
      if (record.version < log_.oldest) {
        require(record.version > 0, "version 0 has a commit");
        log_.pinned.push_back(record.version);
      } else {
        require(record.version == expected++, "a version is missing");
      }
    }
    require(expected == header_.latest + 1 || header_.latest == 0, "a version is missing");
    require(log_.latest() == header_.latest, "it has another latest version than was told");
    require(log_.oldest > 0 || !header_.empty_version_pinned, "version 0 is kept twice");
    const bool has_first = log_.first_commit.has_value();
    require(has_first == !records.empty(), "the time of the first commit is missing");
    require(!has_first || *log_.first_commit <= records.front().timestamp, "times do not ascend");
    check_sizes();
  }

  // From the present back, as far as all changes are there; before that there cannot be more rows than keys.
  void check_sizes() {
    std::uint64_t size = header_.rows;
    for (auto record = log_.records.rbegin(); record != log_.records.rend(); ++record) {
      if (!record->has_changes) {
        require(record->table_size <= header_.rows + header_.entries,
                "a version has more rows than there are");
        continue;
      }
      require(record->table_size == size, "a version has another number of rows than was told");
      std::array<std::size_t, 5> kinds{};
      for (const auto* entry = record->block.first(); entry != nullptr; entry = record->block.next(entry))
        ++kinds[static_cast<std::size_t>(entry->kind())];
      const auto [inserts, updates, erases, departures, arrivals] = kinds;
      const Metrics metrics = record->metrics.get();
      require(metrics.inserted == inserts && metrics.updated == updates + departures &&
                  metrics.deleted == erases && departures == arrivals,
              "the counts of a version are not those of its changes");
      size += erases;
      size -= inserts;
      require(size <= header_.rows + header_.entries, "a version has more rows than there are");
    }
    require(log_.oldest > 0 || size == 0, "version 0 has rows");
  }

  // --- Rows

  void read_rows() {
    core_->keys.presize(header_.rows);
    keyless_.reserve(
        std::clamp<std::uint64_t>(header_.rows, 1, std::max(min_keys_at_once, header_.rows / 8)));
    sorted_.resize(keyless_.capacity());
    std::uint64_t least_order = 0;
    for (std::uint64_t done = 0; done < header_.rows;) {
      tell_progress(done);
      const std::uint64_t stop = std::min<std::uint64_t>(header_.rows, done + 4096);
      for (; done < stop; ++done) read_row(least_order);
    }
    index_keys();
    keyless_ = {};
    sorted_ = {};
    tell_progress(header_.rows);
  }

  void tell_progress(std::uint64_t done) const {
    if (progress_ && !progress_(done, header_.rows)) throw Cancelled("load()");
  }

  void read_row(std::uint64_t& least_order) {
    ByteReader& in = element();
    const Slot<Row>& slot = *detail::add_slot(*core_, get_row());
    const std::uint64_t newest = detail::get_u64(in);
    slot.order = get_order();
    if constexpr (!CoreType::ordered) {
      require(slot.order >= least_order, "rows are not in their order");
      least_order = slot.order + 1;
    }
    if (newest != 0) {
      Entry* const entry = take_below(newest);
      require(may_stand_below_row(*entry), "the last change of a row took it away");
      slot.newest = entry;
      if (entry->leaves_row()) entry->set_newer(&slot);
    } else {
      require(log_.oldest > 0, "a row has come without a change");
    }
    const auto key = CoreType::key_of(slot.get());
    check_chain(key, slot.newest);
    keyless_.push_back({detail::hash_of(key), &slot});
    if (keyless_.size() == keyless_.capacity()) index_keys();
  }

  // Rows enter the index of keys many at a time.
  void index_keys() {
    const auto is_same = [](const Slot<Row>& a, const Slot<Row>& b) {
      return detail::equal_values(CoreType::key_of(a.get()), CoreType::key_of(b.get()));
    };
    const Slot<Row>* const twice = core_->keys.add_new(keyless_, sorted_, is_same);
    if (twice != nullptr)
      fail("the key " + detail::key_text(CoreType::key_of(twice->get())) + " is there twice");
    keyless_.clear();
  }

  // --- What the rows and the log make together

  // The changes that nothing leads to are the last ones of keys without a row.
  void find_graves() {
    const auto graves = static_cast<std::size_t>(std::ranges::count(reached_, false));
    core_->graves.presize(graves);
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (reached_[i]) continue;
      Entry& entry = *entries_[i];
      require(!entry.leaves_row(), "a change leaves a row that is not there");
      const auto key = CoreType::key_of(entry.before().get());
      const std::uint64_t hash = detail::hash_of(key);
      require(core_->newest_change(key, hash) == nullptr && core_->find(key, hash) == nullptr,
              "a key has two lives at once");
      core_->graves.add(hash, &entry);
      check_chain(key, &entry);
    }
  }

  template <class Key>
  void check_chain(const Key& key, const Entry* newest) const {
    for (const Entry* entry = newest; entry != nullptr; entry = entry->older()) {
      if (entry->has_before()) {
        require(detail::equal_values(CoreType::key_of(entry->before().get()), key),
                "changes of different keys are linked");
      }
      const bool begins = entry->older() == nullptr && !entry->has_before();
      require(entry->older() != nullptr || begins || log_.oldest > 0, "a row has come without a change");
    }
  }

  template <std::size_t... N>
  void check_secondaries(std::index_sequence<N...>) const {
    (check_secondary<N>(), ...);
  }

  // Equal rows stand beside each other in an index.
  template <std::size_t N>
  void check_secondary() const {
    using Spec = std::tuple_element_t<N, typename CoreType::Indexes>;
    using KeyOf = parts_of<Spec>;
    if constexpr (spec_traits<Spec>::unique) {
      const Row* previous = nullptr;
      for (const Slot<Row>& slot : core_->template secondary<N>()) {
        const Row& row = slot.get();
        const auto key = KeyOf::of(row);
        if (previous != nullptr && !detail::has_empty_part(key) &&
            detail::equal_values(KeyOf::of(*previous), key)) {
          throw UniqueViolation("two rows of the snapshot have the unique " + KeyOf::name() + " = " +
                                    detail::key_text(key) + "; load it into a table without that constraint",
                                KeyOf::name(), detail::key_text(key), no_position, no_position);
        }
        previous = &row;
      }
    }
  }

  void read_names() {
    for (std::uint64_t i = 0; i < header_.tags; ++i) {
      std::string name(detail::get_text(element()));
      const Version version = detail::get_u64(*in_);
      require(log_.readable(version), "a tag is on a version that cannot be read");
      require(core_->tags.try_emplace(std::move(name), version).second, "a tag is there twice");
    }
    for (std::uint64_t i = 0; i < header_.applied; ++i) {
      std::string app(detail::get_text(element()));
      const std::uint64_t number = detail::get_u64(*in_);
      require(core_->applied.try_emplace(std::move(app), number).second, "an application is there twice");
    }
  }

  void read_remembered() {
    for (std::uint64_t i = 0; i < remembered_.size(); ++i) remembered_.read(element());
    core_->sequences = remembered_.take(chunks_.file(), chunks_.offset_of(in_->offset()));
  }

  std::unique_ptr<CoreType> core_;
  CommitLog<Row>& log_;
  const Progress& progress_;
  ChunkReader<Source> chunks_;
  ByteReader* in_ = nullptr;
  Header header_{};
  std::optional<RowDecoder<Row>> rows_;
  std::unique_ptr<Decoder> decoder_;
  RememberedLoader<CoreType> remembered_;
  SharedText parameters_;
  std::vector<Entry*> entries_;
  Arena scratch_{*core_->options.memory};  // of blocks that are being read
  std::vector<Link> links_;
  std::vector<bool> reached_;                     // by a row or a later change
  std::vector<Hashed<const Slot<Row>>> keyless_;  // rows that are not in the index of keys yet
  std::vector<Hashed<const Slot<Row>>> sorted_;   // scratch
};

/// Reads what write_snapshot() wrote: see ChunkReader for the source. Throws CorruptSnapshot, SchemaMismatch,
/// UnsupportedFormat, UniqueViolation, Cancelled, what the source throws, and what the rows' own functions
/// throw.
template <class CoreType, class Source>
std::unique_ptr<CoreType> read_snapshot(Source& source, std::string file, TableOptions options,
                                        const Progress& progress = {}) {
  return SnapshotReader<CoreType, Source>(source, std::move(file), std::move(options), progress).run();
}

}  // namespace keyfold::detail
