// Travel through fifteen releases of a media-type database: each release is merged over the one before and tagged by
// its name. Then: what was true in an old one, what changed between two, one release undone, and all put back.
// Argument: the directory of the data; examples/data/mime-db if there is none.
#include <keyfold/csv.hpp>
#include <keyfold/keyfold.hpp>
#include <keyfold/print.hpp>

#include <boost/describe/class.hpp>

#include <filesystem>
#include <iostream>
#include <optional>
#include <string>

struct MimeType {
  std::string mime_type;
  std::optional<std::string> source;
  std::optional<std::string> charset;
  std::optional<bool> compressible;
  std::optional<std::string> extensions;
  bool operator==(const MimeType&) const = default;
};
BOOST_DESCRIBE_STRUCT(MimeType, (), (mime_type, source, charset, compressible, extensions))

struct Release {
  std::string release;
};
BOOST_DESCRIBE_STRUCT(Release, (), (release))

using MimeTypes = kf::Table<MimeType, kf::Key<&MimeType::mime_type>>;

MimeTypes load(const std::filesystem::path& directory) {
  MimeTypes types;
  for (const auto& [release] : kf::read_csv<Release>(directory / "steps.csv", {.ignore_unknown_columns = true})) {
    types.merge(kf::csv_rows<MimeType>(directory / (release + ".csv")))
        .when_matched().update_all()
        .when_not_matched().insert_all()
        .when_not_matched_by_source().erase()
        .execute();
    types.tag(release, types.version());
  }
  return types;
}

std::size_t count(const kf::ChangeSet<MimeType>& changes, kf::ChangeKind kind) {
  return changes.filter([&](const auto& change) { return change.kind() == kind; }).size();
}

int main(int argc, char** argv) {
  MimeTypes types = load(argc > 1 ? argv[1] : "examples/data/mime-db");

  std::cout << "application/javascript over time:\n";
  for (const auto& change : types.history_of("application/javascript")) {
    std::cout << "  version " << change.version() << ": " << change.after()->extensions.value_or("") << '\n';
  }
  std::cout << "in 1.45.0: " << *types.as_of("1.45.0").at("application/javascript").extensions << "\n\n";

  const auto changes = types.diff(types.tags().at("1.52.0"), types.tags().at("1.54.0"));
  std::cout << "from 1.52.0 to 1.54.0: " << count(changes, kf::ChangeKind::insert) << " inserted, "
            << count(changes, kf::ChangeKind::update) << " updated, " << count(changes, kf::ChangeKind::erase)
            << " deleted\n"
            << kf::print(changes.filter([](const auto& change) { return change.kind() == kf::ChangeKind::erase; }));

  try {
    types.undo(types.tags().at("1.48.0"));
  } catch (const kf::ChangeConflict& conflict) {
    std::cout << "\n1.48.0 cannot be undone, a later release has changed " << conflict.keys.front() << '\n';
  }
  std::cout << "without 1.51.0:\n" << kf::print(types.undo(types.tags().at("1.51.0")).changes());

  const auto restored = types.restore("1.54.0");
  std::cout << "\nrestored: " << restored.metrics().affected() << " rows at version " << restored.version()
            << ", different from 1.54.0: " << types.diff(types.tags().at("1.54.0"), types.version()).size() << '\n';
}
