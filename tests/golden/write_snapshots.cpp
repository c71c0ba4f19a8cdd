// Writes the snapshots of this folder, one for each sample and format version:
//     write_snapshots tests/golden
// A format that was released is never written again; its files stay as they are, and golden_test reads them.
#include <keyfold/snapshot.hpp>

#include <iostream>

#include "support/snapshot_samples.hpp"

int main(int argc, char* argv[]) {
  if (argc != 2) {
    std::cerr << "usage: write_snapshots FOLDER\n";
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  const std::string version = "_v" + std::to_string(keyfold::detail::snapshot_format) + ".kfs";
  keyfold::save(snapshot_samples::wide_table(), folder / ("wide" + version));
  keyfold::save(snapshot_samples::person_table(), folder / ("person" + version));
  keyfold::save(snapshot_samples::tick_table(), folder / ("tick" + version));
  keyfold::save(snapshot_samples::stock_table(), folder / ("stock" + version));
  keyfold::save(snapshot_samples::parcel_table(), folder / ("parcel" + version));
  keyfold::save(snapshot_samples::fare_table(), folder / ("fare" + version));
}
