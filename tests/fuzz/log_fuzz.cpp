// libFuzzer target: opens a directory with a snapshot and a log made of its input, and salvages it.
//     build/fuzz/tests/fuzz/log_fuzz tests/fuzz/corpus/log
#include "fuzz/log_fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);

int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  keyfold_test::fuzz_log(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
