// What is done with bytes that may be the files of a store: the body of the fuzz target and of its replay as
// a test.
#pragma once

#include <keyfold/store.hpp>

#include "fuzz/snapshot_fuzz.hpp"
#include "support/memory_disk.hpp"

namespace keyfold_test {

// An input: how it is read, the size of the snapshot, the snapshot, the log.
inline constexpr unsigned log_fuzz_narrow = 1;  // read into Narrow, not Wide
inline constexpr unsigned log_fuzz_marker = 4;  // there is a marker, which is right
inline constexpr unsigned log_fuzz_sealed =
    8;  // the checksums, and what frames are in order by, are made right
inline constexpr std::size_t log_fuzz_head = 5;  // bytes before the snapshot

inline std::string log_fuzz_input(unsigned how, const Bytes& snapshot, const Bytes& log) {
  std::string input(1, static_cast<char>(how));
  const auto size = static_cast<std::uint32_t>(snapshot.size());
  for (unsigned shift = 0; shift < 32; shift += 8) input.push_back(static_cast<char>(size >> shift & 0xFFU));
  input.append(reinterpret_cast<const char*>(snapshot.data()), snapshot.size());
  return input.append(reinterpret_cast<const char*>(log.data()), log.size());
}

inline constexpr std::uint64_t fuzzed_generation = 2;
inline constexpr std::uint64_t fuzzed_id = 77;

/// The snapshot with a right header and trailer, and the one inside it with right checksums.
inline Bytes sealed_snapshot(std::span<const std::byte> file, std::uint64_t base) {
  using Header = keyfold::detail::SnapshotHeader;
  using Checks = keyfold::detail::FrameChecks;
  constexpr std::size_t around = Header::Layout::size + Header::trailer;
  std::string state;
  if (file.size() > around) {
    const auto payload = file.subspan(Header::Layout::size, file.size() - around);
    state.assign(reinterpret_cast<const char*>(payload.data()), payload.size());
  }
  const auto all = std::as_bytes(std::span(state));
  const std::size_t schema = all.size() < 4 ? 0 : keyfold::detail::load_number<std::uint32_t>(all.data());
  if (all.size() >= 4 && schema <= all.size() - 4) {
    std::string inner = state.substr(4 + schema);
    seal(inner);
    state.replace(4 + schema, inner.size(), inner);
  }
  Bytes out;
  Header{fuzzed_generation, base}.append<Checks>(out);
  const auto payload = std::as_bytes(std::span(state));
  out.insert(out.end(), payload.begin(), payload.end());
  keyfold::detail::put_number(out, std::uint64_t{payload.size()});
  keyfold::detail::put_number(out, Checks::sum(out));
  return out;
}

/// The log with a right header, and all its frames in order and with right checksums. A length that goes
/// beyond the end is left alone.
inline Bytes sealed_log(std::span<const std::byte> file, std::uint64_t base, std::uint64_t& last) {
  using Checks = keyfold::detail::FrameChecks;
  using Frame = keyfold::detail::FrameHeader;
  constexpr std::size_t header = keyfold::detail::LogHeader::Layout::size;
  Bytes out;
  keyfold::detail::LogHeader{fuzzed_generation, fuzzed_id, base, base}.append<Checks>(out);
  last = base;
  std::size_t at = std::min(header, file.size());
  while (file.size() - at >= Frame::size) {
    const std::size_t length = keyfold::detail::load_number<std::uint32_t>(file.data() + at + 4);
    if (length > file.size() - at - Frame::size) break;
    Frame::append_frame<Checks>(out, fuzzed_id, out.size(), last + 1, last,
                                file.subspan(at + Frame::size, length));
    ++last;
    at += Frame::size + length;
  }
  out.insert(out.end(), file.begin() + static_cast<std::ptrdiff_t>(at), file.end());
  return out;
}

inline void put_file(MemoryDisk& disk, const std::string& name, std::span<const std::byte> bytes) {
  disk.create(name);
  disk.contents(name).assign(bytes.begin(), bytes.end());
}

inline MemoryDisk directory_of(const std::string& input) {
  const auto how = static_cast<unsigned char>(input[0]);
  const auto bytes = std::as_bytes(std::span(input)).subspan(log_fuzz_head);
  const std::size_t size =
      keyfold::detail::load_number<std::uint32_t>(reinterpret_cast<const std::byte*>(input.data()) + 1);
  auto snapshot = bytes.first(std::min(size, bytes.size()));
  auto log = bytes.subspan(snapshot.size());
  MemoryDisk disk(1);
  if ((how & log_fuzz_sealed) == 0) {
    put_file(disk, "snapshot-2", snapshot);
    put_file(disk, "log-2", log);
    return disk;
  }
  constexpr std::uint64_t base = 5;
  std::uint64_t last = base;
  const Bytes right_log = sealed_log(log, base, last);
  put_file(disk, "snapshot-2", sealed_snapshot(snapshot, base));
  put_file(disk, "log-2", right_log);
  if ((how & log_fuzz_marker) != 0) {
    Bytes marker;
    keyfold::detail::CleanMarker{fuzzed_generation, fuzzed_id, right_log.size(), last}
        .append<keyfold::detail::FrameChecks>(marker);
    put_file(disk, "CLEAN", marker);
  }
  return disk;
}

inline std::map<std::string, Bytes> files_of(const MemoryDisk& disk) {
  std::map<std::string, Bytes> files;
  for (const std::string& name : disk.list()) files[name] = disk.read(name);
  return files;
}

template <class Table>
void try_to_salvage(MemoryDisk disk) {
  using Store = keyfold::Store<Table, SharedDisk>;
  const auto before = files_of(disk);
  MemoryDisk fresh(2);
  try {
    Store::salvage(SharedDisk{&disk}, SharedDisk{&fresh});
  } catch (const keyfold::Error&) {
    return;
  }
  demand(files_of(disk) == before);
  exercise(Table(Store(SharedDisk{&fresh}).table()));
}

/// Returns whether the directory was opened. Aborts, or worse, if something is wrong.
template <class Table>
bool try_to_open(MemoryDisk disk) {
  using Store = keyfold::Store<Table, SharedDisk>;
  try_to_salvage<Table>(disk.copy());
  const auto before = files_of(disk);
  std::optional<Store> store;
  try {
    store.emplace(SharedDisk{&disk});
  } catch (const keyfold::Error&) {
    demand(files_of(disk) == before);
    return false;
  }
  const std::string content = saved(store->table());
  exercise(Table(store->table()));
  store->verify();
  store->close();
  store.reset();
  store.emplace(SharedDisk{&disk});
  demand(saved(store->table()) == content);
  store->clear();
  disk.die();
  store.reset();
  disk.kill();
  demand(Store(SharedDisk{&disk}).table().empty());
  return true;
}

inline bool fuzz_log(const std::string& input) {
  using namespace snapshot_samples;
  if (input.size() < log_fuzz_head) return false;
  const bool narrow = (static_cast<unsigned char>(input[0]) & log_fuzz_narrow) != 0;
  return narrow ? try_to_open<NarrowTable>(directory_of(input)) : try_to_open<WideTable>(directory_of(input));
}

}  // namespace keyfold_test
