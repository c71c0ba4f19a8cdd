// libFuzzer target: decodes its input as rows.
//     build/fuzz/tests/fuzz/row_fuzz tests/fuzz/corpus/row
#include "fuzz/row_fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);

int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  keyfold_test::fuzz_rows({reinterpret_cast<const char*>(data), size});
  return 0;
}
