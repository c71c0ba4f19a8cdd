// Writes the seeds of the fuzz targets for logs and rows:
//     write_corpus tests/fuzz/corpus
#include <fstream>
#include <iostream>

#include "fuzz/log_fuzz.hpp"
#include "fuzz/row_fuzz.hpp"

using namespace keyfold_test;
using namespace snapshot_samples;

namespace {

void write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

// A store with records of every sort, five of them before the checkpoint.
MemoryDisk directory() {
  MemoryDisk disk(1);
  kf::Store<WideTable, SharedDisk> store(SharedDisk{&disk}, {.table = steady_clock()});
  store.append(std::vector<Wide>{wide(1), wide(2), wide(3), wide(4), wide(5)});
  store.tag("first", 1);
  store.metadata("a file").erase(2);
  store.insert(wide(2));
  store.tag("second", 2);
  store.checkpoint();
  store.once("loader", 41).insert(wide(6));
  store.untag("second");
  store.merge(std::vector<Wide>{wide(1), wide(8)})
      .when_matched()
      .erase()
      .when_not_matched()
      .insert_all()
      .when_not_matched_by_source(kf::target<&Wide::id> == 3)
      .update([](const Wide& row) {
        Wide moved = row;
        moved.id = 9;
        return moved;
      })
      .execute();
  store.tag("third", 4);
  store.expire(kf::keep_last(2));
  store.restore("first");
  disk.die();
  return disk;
}

void write_log(const std::filesystem::path& path, unsigned how, MemoryDisk disk) {
  disk.kill();
  write_file(path, log_fuzz_input(how, disk.read("snapshot-2"), disk.read("log-2")));
}

template <class Row>
void write_rows(const std::filesystem::path& path, unsigned how, const std::vector<Row>& rows,
                bool with_schema = false) {
  keyfold::detail::ByteBuffer schema;
  if (with_schema) keyfold::detail::put_schema(schema, keyfold::detail::schema_of<Row>());
  std::string input(1, static_cast<char>(with_schema ? how | row_fuzz_schema : how));
  input.append(reinterpret_cast<const char*>(schema.data()), schema.size());
  write_file(path, input + encoded_rows(rows));
}

}  // namespace

int main(int argc, char* argv[]) {
  if (argc != 2) {
    std::cerr << "usage: write_corpus FOLDER\n";
    return 2;
  }
  const std::filesystem::path log = std::filesystem::path(argv[1]) / "log";
  const std::filesystem::path row = std::filesystem::path(argv[1]) / "row";
  write_log(log / "wide", 0, directory());
  write_log(log / "wide_sealed", log_fuzz_sealed, directory());
  write_log(log / "wide_closed", log_fuzz_sealed | log_fuzz_marker, directory());
  write_log(log / "narrow", log_fuzz_sealed | log_fuzz_narrow, directory());
  const std::vector<Wide> wides{wide(1), wide(2), wide(3), wide(4)};
  write_rows(row / "wide", 0, wides);
  write_rows(row / "wide_schema", 0, wides, true);
  write_rows(row / "narrow_schema", 1, wides, true);
  write_rows(row / "person", 2, std::vector<Person>{{"ann", {}}, {"bob", {1, 2}}});
  write_rows(row / "person_schema", 2, std::vector<Person>{{"ann", {}}, {"bob", {1, 2}}}, true);
  write_rows(row / "tick", 3, std::vector<Tick>{{1, 10, 1.5F}, {2, 20, -0.0F}});
}
