// A picture made from a history: fifteen releases of a media-type database, each merged over the one before,
// as bars of what each has changed. Writes SVG, readable on light and dark.
// Argument: the directory of the data; examples/data/mime-db if there is none.
#include <keyfold/csv.hpp>
#include <keyfold/keyfold.hpp>

#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>

struct MimeType {
  std::string mime_type;
  std::optional<std::string> source;
  std::optional<std::string> charset;
  std::optional<bool> compressible;
  std::optional<std::string> extensions;
};
BOOST_DESCRIBE_STRUCT(MimeType, (), (mime_type, source, charset, compressible, extensions))

struct Release {
  std::string release;
};
BOOST_DESCRIBE_STRUCT(Release, (), (release))

using MimeTypes = kf::Table<MimeType, kf::Key<&MimeType::mime_type>>;

MimeTypes load(const std::filesystem::path& directory) {
  MimeTypes types;
  for (const auto& [release] :
       kf::read_csv<Release>(directory / "steps.csv", {.ignore_unknown_columns = true})) {
    types.merge(kf::csv_rows<MimeType>(directory / (release + ".csv")))
        .when_matched().update_all()
        .when_not_matched().insert_all()
        .when_not_matched_by_source().erase()
        .metadata(release)
        .execute();
  }
  return types;
}

// A bar from `bottom` upwards, a pixel for each row; returns where the next one begins.
std::size_t bar(std::size_t x, std::size_t bottom, std::size_t rows, const char* colour) {
  const std::size_t top = bottom - rows;
  std::cout << "<rect x=\"" << x << "\" y=\"" << top << "\" width=\"36\" height=\"" << rows << "\" fill=\""
            << colour << "\"/>\n";
  return top;
}

void text(std::size_t x, std::size_t y, std::string_view words) {
  std::cout << "<text x=\"" << x << "\" y=\"" << y << "\">" << words << "</text>\n";
}

int main(int argc, char** argv) {
  const MimeTypes types = load(argc > 1 ? argv[1] : "examples/data/mime-db");
  const std::size_t width = 56 * types.history().size() + 64;
  std::cout << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << width << " 350\" height=\"350\">\n"
            << "<style>text { font: 12px sans-serif; fill: #1f2933; text-anchor: middle; }</style>\n"
            << "<rect width=\"100%\" height=\"100%\" rx=\"10\" fill=\"#f7f9fb\"/>\n";
  text(width / 2, 24, "rows inserted (green), updated (yellow) and deleted (red) by each release of mime-db");
  std::size_t x = 42;
  for (const kf::Commit<MimeType>& commit : types.history()) {
    const kf::Metrics& counts = commit.metrics();
    const bool first = commit.version() == 1;
    std::size_t top = bar(x, 290, first ? 0 : counts.inserted, "#2f8a4a");
    top = bar(x, top, counts.updated, "#d9a521");
    top = bar(x, top, counts.deleted, "#b3403a");
    text(x + 18, top - 6, first ? "all new" : std::to_string(counts.affected()));
    text(x + 18, 310, commit.metadata());
    text(x + 18, 330, std::to_string(types.as_of(commit.version()).size()));
    x += 56;
  }
  std::cout << "</svg>\n";
}
