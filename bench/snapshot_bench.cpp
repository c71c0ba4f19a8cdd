// save() and load() beside a plain fwrite and fread of the same bytes, interleaved: processor time, the best
// of some rounds. No fsync on either side.
//     snapshot_bench [rows] [rounds]
#include <keyfold/keyfold.hpp>
#include <keyfold/snapshot.hpp>

#include <boost/describe/class.hpp>
#include <boost/serialization/version.hpp>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

namespace {

struct Plain {
  std::int64_t id = 0;
  std::int64_t a = 0;
  double b = 0;
  std::int64_t c = 0;
};
BOOST_DESCRIBE_STRUCT(Plain, (), (id, a, b, c))

struct Texts {
  std::int64_t id = 0;
  std::string customer;
  std::string status;
  std::int64_t cents = 0;
};
BOOST_DESCRIBE_STRUCT(Texts, (), (id, customer, status, cents))

struct Archived {
  std::int64_t id = 0;
  std::int64_t a = 0;
  double b = 0;
  std::int64_t c = 0;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive & id & a & b & c;
  }
};

template <class Row>
Row row_of(std::int64_t i) {
  if constexpr (std::is_same_v<Row, Texts>) {
    return {i, "customer number " + std::to_string(i), i % 2 == 0 ? "open" : "closed", i * 7};
  } else {
    return {i, i * 3, static_cast<double>(i), i ^ 0x5555};
  }
}

double best(double now, double before) { return now < before ? now : before; }

// Processor time, of the system too: what other programs on the machine do is no matter of ours.
double processor_time() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

template <class Action>
double seconds(Action action) {
  const double start = processor_time();
  action();
  return processor_time() - start;
}

struct Closer {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Closer>;

File open(const std::filesystem::path& path, const char* mode) {
  File file(std::fopen(path.c_str(), mode));
  if (file == nullptr) std::abort();
  return file;
}

std::vector<char> content_of(const std::filesystem::path& path) {
  std::vector<char> bytes(std::filesystem::file_size(path));
  if (std::fread(bytes.data(), 1, bytes.size(), open(path, "rb").get()) != bytes.size()) std::abort();
  return bytes;
}

template <class Row>
void measure(const char* name, std::int64_t count, int rounds) {
  using Table = kf::Table<Row, kf::Key<&Row::id>>;
  using Core = kf::detail::CoreAccess::core_t<Table>;
  const auto path = std::filesystem::temp_directory_path() / "keyfold-bench.kfs";
  Table table;
  {
    std::vector<Row> rows;
    for (std::int64_t i = 0; i < count; ++i) rows.push_back(row_of<Row>(i));
    table.append(std::move(rows));
  }
  const auto save = [&] {
    const File file = open(path, "wb");
    kf::detail::write_snapshot(kf::detail::CoreAccess::core(table), [&](std::span<const std::byte> bytes) {
      if (std::fwrite(bytes.data(), 1, bytes.size(), file.get()) != bytes.size()) std::abort();
    });
  };
  save();
  const std::vector<char> bytes = content_of(path);
  std::vector<char> into(bytes.size());
  const std::vector<Row> rows(table.begin(), table.end());

  constexpr double never = 1e9;
  double raw_write = never, saved = never, raw_read = never, loaded = never, built = never;
  for (int round = 0; round < rounds; ++round) {
    raw_write = best(seconds([&] {
                       if (std::fwrite(bytes.data(), 1, bytes.size(), open(path, "wb").get()) != bytes.size())
                         std::abort();
                     }),
                     raw_write);
    saved = best(seconds(save), saved);
    raw_read = best(seconds([&] {
                      if (std::fread(into.data(), 1, into.size(), open(path, "rb").get()) != into.size())
                        std::abort();
                    }),
                    raw_read);
    std::unique_ptr<Core> core;
    loaded = best(seconds([&] {
                    kf::detail::PosixCalls calls;
                    kf::detail::FileSource<kf::detail::PosixCalls> source(calls, path.string());
                    core = kf::detail::read_snapshot<Core>(source, path.string(), {});
                  }),
                  loaded);
    if (core->rows.size() != table.size()) std::abort();
    core.reset();
    Table fresh;
    std::vector<Row> copy(rows);
    built = best(seconds([&] { fresh.append(std::move(copy)); }), built);
  }
  const double n = static_cast<double>(count);
  std::printf(
      "%-10s %8.1f MB  fwrite %6.1f  save %6.1f ns/row (x%.2f)   fread %6.1f  load %6.1f ns/row (x%.2f; "
      "append() of the rows %6.1f)\n",
      name, static_cast<double>(bytes.size()) / 1e6, raw_write / n * 1e9, saved / n * 1e9, saved / raw_write,
      raw_read / n * 1e9, loaded / n * 1e9, loaded / raw_read, built / n * 1e9);
  std::filesystem::remove(path);
}

}  // namespace

int main(int argc, char* argv[]) {
  const std::int64_t rows = argc > 1 ? std::atoll(argv[1]) : 1000000;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 7;
  measure<Plain>("numbers", rows, rounds);
  measure<Texts>("texts", rows, rounds);
  measure<Archived>("serialize", rows, rounds);
}
