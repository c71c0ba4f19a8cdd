// Stores whose directories are checked in below tests/golden. Never change what these functions make.
#pragma once

#include <keyfold/store.hpp>

#include <map>
#include <string>

#include "support/memory_disk.hpp"
#include "support/snapshot_samples.hpp"

namespace store_samples {

/// The files of a store that was closed, or whose process died; on a disk without chance, so that they are
/// always the same.
inline std::map<std::string, keyfold_test::Bytes> parcel_store(bool closed) {
  keyfold_test::MemoryDisk disk;
  {
    using Store = keyfold::Store<snapshot_samples::ParcelTable, keyfold_test::SharedDisk>;
    Store store(keyfold_test::SharedDisk{&disk}, {.table = snapshot_samples::steady_clock()});
    snapshot_samples::live(store);
    if (closed) store.close();
    disk.die();
  }
  disk.kill();
  std::map<std::string, keyfold_test::Bytes> files;
  for (const std::string& name : disk.list()) files[name] = disk.read(name);
  return files;
}

}  // namespace store_samples
