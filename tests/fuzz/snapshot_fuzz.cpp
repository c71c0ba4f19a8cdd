// libFuzzer target: loads its input as a snapshot, as it is and with its checksums made right.
//     build/fuzz/tests/fuzz/snapshot_fuzz tests/fuzz/corpus/snapshot
#include "fuzz/snapshot_fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);

int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  keyfold_test::fuzz_snapshot(bytes);
  keyfold_test::seal(bytes);
  keyfold_test::fuzz_snapshot(bytes);
  return 0;
}
