// Records of a store's log, made by hand after docs/store-format.md: what the log of a stranger may say.
#pragma once

#include <keyfold/detail/journal.hpp>
#include <keyfold/metrics.hpp>

#include <string_view>

#include "support/memory_disk.hpp"

namespace keyfold_test {

class LogRecord {
 public:
  explicit LogRecord(std::uint8_t kind, std::uint64_t oldest = 0) { number(kind).number(oldest); }

  template <class Number>
  LogRecord& number(Number value) {
    keyfold::detail::put_number(bytes_, value);
    return *this;
  }
  LogRecord& text(std::string_view value) {
    number(static_cast<std::uint32_t>(value.size()));
    for (const char c : value) bytes_.push_back(static_cast<std::byte>(c));
    return *this;
  }

  const Bytes& bytes() const { return bytes_; }

 private:
  Bytes bytes_;
};

/// A commit up to its changes, without numbers of once() or updates of feeds if `whole`.
inline LogRecord commit_record(std::uint64_t version, const keyfold::Metrics& metrics = {}, bool whole = true,
                               std::int64_t time = 4'000'000'000'000'000) {
  LogRecord record(1);
  record.number(version).number(time).text("MERGE").number(std::uint8_t{0}).number(std::uint8_t{0});
  for (const std::size_t count :
       {metrics.source_rows, metrics.inserted, metrics.updated, metrics.deleted, metrics.unchanged,
        metrics.skipped, metrics.matched_updated, metrics.matched_deleted,
        metrics.not_matched_by_source_updated, metrics.not_matched_by_source_deleted,
        metrics.dropped_duplicates, metrics.dropped_late})
    record.number(std::uint64_t{count});
  if (whole) record.number(std::uint32_t{0}).number(std::uint32_t{0});
  return record;
}

/// Appends the record to the log of a store that was closed, as a good frame; returns where it stands.
inline std::size_t append_to_log(MemoryDisk& disk, const LogRecord& record) {
  const auto image = keyfold::detail::read_journal<keyfold::detail::FrameChecks>(disk);
  keyfold::detail::Journal<MemoryDisk> journal(disk, image);
  journal.append(record.bytes());
  journal.sync();
  journal.close();
  return image.end;
}

}  // namespace keyfold_test
