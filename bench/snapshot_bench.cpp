// save() and load() beside a plain fwrite and fread of the same bytes, a copy of the rows by hand, cereal,
// and append(). No fsync on any side.
#include <keyfold/keyfold.hpp>
#include <keyfold/snapshot.hpp>

#include <boost/describe/class.hpp>
#include <boost/serialization/version.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "measure.hpp"

#if __has_include(<cereal/archives/binary.hpp>)
#include <cereal/archives/binary.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/vector.hpp>
#define KEYFOLD_BENCH_CEREAL
#endif

using keyfold_bench::Contest;
using keyfold_bench::read_number;
using keyfold_bench::Rehearse;

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

// For cereal. keyfold takes the columns.
template <class Archive>
void serialize(Archive& archive, Plain& row) {
  archive(row.id, row.a, row.b, row.c);
}
template <class Archive>
void serialize(Archive& archive, Texts& row) {
  archive(row.id, row.customer, row.status, row.cents);
}

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

// What a programmer would write by hand: numbers as they are, texts behind their lengths; no checks.

class Output {
 public:
  explicit Output(const std::filesystem::path& path) : file_(open(path, "wb")) {}
  ~Output() { flush(); }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void put(const void* from, std::size_t count) {
    if (count > buffer_.size() - used_) flush();
    std::memcpy(buffer_.data() + used_, from, count);
    used_ += count;
  }
  template <class Number>
  void number(Number value) {
    put(&value, sizeof value);
  }
  void text(const std::string& value) {
    number(static_cast<std::uint32_t>(value.size()));
    put(value.data(), value.size());
  }

 private:
  void flush() {
    if (std::fwrite(buffer_.data(), 1, used_, file_.get()) != used_) std::abort();
    used_ = 0;
  }

  File file_;
  std::vector<char> buffer_ = std::vector<char>(std::size_t{256} * 1024);
  std::size_t used_ = 0;
};

void put_row(Output& out, const Texts& row) {
  out.number(row.id);
  out.text(row.customer);
  out.text(row.status);
  out.number(row.cents);
}
template <class Row>
void put_row(Output& out, const Row& row) {
  out.put(&row, sizeof row);
}

template <class Number>
Number take_number(const char*& from) {
  Number value{};
  std::memcpy(&value, from, sizeof value);
  from += sizeof value;
  return value;
}
void take_text(const char*& from, std::string& to) {
  const auto size = take_number<std::uint32_t>(from);
  to.assign(from, size);
  from += size;
}
void take_row(const char*& from, Texts& row) {
  row.id = take_number<std::int64_t>(from);
  take_text(from, row.customer);
  take_text(from, row.status);
  row.cents = take_number<std::int64_t>(from);
}
template <class Row>
void take_row(const char*& from, Row& row) {
  row = take_number<Row>(from);
}

void tell(const char* rows, const std::string& what, double figure, double limit) {
  std::printf("%-10s %-40s %6.2f  goal %.2f  %s\n", rows, what.c_str(), figure, limit,
              figure <= limit ? "met" : "MISSED");
}

template <class Row>
void measure(const char* name, std::size_t count, std::size_t rounds, const std::string& only) {
  using Table = kf::Table<Row, kf::Key<&Row::id>>;
  using Core = kf::detail::CoreAccess::core_t<Table>;
  const auto directory = std::filesystem::temp_directory_path();
  const auto path = directory / "keyfold-bench.kfs";
  const auto raw_path = directory / "keyfold-bench.raw";
  const auto copy_path = directory / "keyfold-bench.copy";
  const auto cereal_path = directory / "keyfold-bench.cereal";
  std::vector<Row> rows;
  for (std::size_t i = 0; i < count; ++i) rows.push_back(row_of<Row>(static_cast<std::int64_t>(i)));
  Table table;
  table.append(rows);
  const auto units = static_cast<std::int64_t>(count);

  const auto save = [&] {
    const File file = open(path, "wb");
    kf::detail::write_snapshot(kf::detail::CoreAccess::core(table), [&](std::span<const std::byte> bytes) {
      if (std::fwrite(bytes.data(), 1, bytes.size(), file.get()) != bytes.size()) std::abort();
    });
    return units;
  };
  save();
  const std::vector<char> bytes = content_of(path);
  const auto copy_out = [&] {
    Output out(copy_path);
    for (const Row& row : rows) put_row(out, row);
    return units;
  };
  copy_out();

  Contest out(Rehearse::no, only);
  out.enter("fwrite", count, units, [&] {
    if (std::fwrite(bytes.data(), 1, bytes.size(), open(raw_path, "wb").get()) != bytes.size()) std::abort();
    return units;
  });
  out.enter("save", count, units, save);
  out.enter("copy", count, units, copy_out);
#ifdef KEYFOLD_BENCH_CEREAL
  const auto cereal_out = [&] {
    std::ofstream stream(cereal_path, std::ios::binary);
    cereal::BinaryOutputArchive archive(stream);
    archive(rows);
    return units;
  };
  cereal_out();
  out.enter("cereal", count, units, cereal_out);
#endif

  // What is made is destroyed by the next round, before the clock runs: freeing is no part of loading.
  std::vector<char> buffer(bytes.size());
  std::unique_ptr<Core> loaded;
  std::vector<Row> read;
  std::optional<Table> built;
  std::vector<Row> source;
  Contest in(Rehearse::no, only);
  const auto fread_all = [&] {
    if (std::fread(buffer.data(), 1, buffer.size(), open(path, "rb").get()) != buffer.size()) std::abort();
  };
  in.enter("fread", count, units, [&] {
    fread_all();
    return units;
  });
  in.enter("load", count, units, [&] {
    kf::detail::PosixCalls calls;
    kf::detail::FileSource<kf::detail::PosixCalls> file(calls, path.string());
    loaded = kf::detail::read_snapshot<Core>(file, path.string(), {});
    return static_cast<std::int64_t>(loaded->rows.size());
  });
  in.enter("append", count, units, [&] {
    built->append(std::move(source));
    return static_cast<std::int64_t>(built->size());
  });
  in.enter("copy", count, units, [&] {
    const std::vector<char> all = content_of(copy_path);
    const char* from = all.data();
    read.resize(count);
    for (Row& row : read) take_row(from, row);
    return units;
  });
#ifdef KEYFOLD_BENCH_CEREAL
  in.enter("cereal", count, units, [&] {
    std::ifstream stream(cereal_path, std::ios::binary);
    cereal::BinaryInputArchive archive(stream);
    archive(read);
    return static_cast<std::int64_t>(read.size());
  });
#endif
  for (std::size_t round = 0; round <= rounds; ++round) {
    out.round(round == 0);
    loaded.reset();
    built.emplace();
    source = rows;
    in.round(round == 0);
    read = {};
  }
  if (!out.right() || !in.right()) std::abort();
  std::printf("%s, %.1f MB\n", name, static_cast<double>(bytes.size()) / 1e6);
  for (const Contest* contest : {&out, &in}) {
    std::printf(contest == &out ? "  out:" : "  in: ");
    contest->for_each_name(
        [&](const std::string& who) { std::printf("  %s %.1f ns/row", who.c_str(), contest->time(who)); });
    std::printf("\n");
  }
  if (!only.empty()) return;
  tell(name, "save / fwrite of the same bytes", out.ratio("save", "fwrite"), 1.5);
  tell(name, "save / copy by hand of the rows", out.ratio("save", "copy"), 1.5);
  tell(name, "load / fread of the same bytes", in.ratio("load", "fread"), 1.5);
  tell(name, "load / copy by hand of the rows", in.ratio("load", "copy"), 1.5);
  tell(name, "load / append() of the rows", in.ratio("load", "append"), 1.0);
#ifdef KEYFOLD_BENCH_CEREAL
  tell(name, "save / cereal", out.ratio("save", "cereal"), 1.0);
  tell(name, "load / cereal", in.ratio("load", "cereal"), 1.0);
#endif
  for (const auto& made : {path, raw_path, copy_path, cereal_path}) std::filesystem::remove(made);
}

}  // namespace

int main(int argc, char* argv[]) {
  std::size_t rows = 1'000'000;
  std::size_t rounds = 9;
  std::string only;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("--only=")) {
      only = argument.substr(7);
    } else if (!read_number(argument, "--rows=", rows) && !read_number(argument, "--rounds=", rounds)) {
      std::fprintf(stderr, "snapshot_bench [--rows=N] [--rounds=N] [--only=NAME]\n");
      return 1;
    }
  }
  measure<Plain>("numbers", rows, rounds, only);
  measure<Texts>("texts", rows, rounds, only);
  measure<Archived>("serialize", rows, rounds, only);
}
