// Stores that do one thing wrong. The tests of the journal are good for something if they catch each.
// optimised
#include "support/catch.hpp"
#include "support/journal_damage.hpp"

using namespace keyfold_test;

namespace {

constexpr std::size_t enough = 20'000;  // cuts of power in which a flaw must show

struct NoChecksums : keyfold::detail::FrameChecks {
  static std::uint32_t sum(ByteSpan, std::uint32_t = 0) noexcept { return 0; }
};

// Takes the first bad frame for the end, whatever was promised.
struct StopsAtFirstBadFrame : keyfold::detail::FrameChecks {
  static constexpr bool seeks_promises = false;
};

// Sums up what a weak program would: each byte by itself.
struct AddsBytes : keyfold::detail::FrameChecks {
  static std::uint32_t sum(ByteSpan bytes, std::uint32_t seed = 0) noexcept {
    for (const std::byte b : bytes) seed ^= std::to_integer<std::uint32_t>(b);
    return seed;
  }
};

void must_show(const char* flaw, const Lives& lives) {
  INFO(flaw);
  CHECK(lives.wrong != "");
}

}  // namespace

TEST_CASE("a flaw in the use of the disk is caught") {
  must_show("no fsync of the log", run_lives(1, enough, Flaw::no_log_sync));
  must_show("no fsync of the snapshot", run_lives(1, enough, Flaw::no_snapshot_sync));
  must_show("no fsync of the directory", run_lives(1, enough, Flaw::no_directory_sync));
  must_show("a snapshot is renamed before it is synced",
            run_lives(1, enough, Flaw::snapshot_renamed_before_sync));
  must_show("the old generation goes before the new one is there",
            run_lives(1, enough, Flaw::old_generation_removed_early));
  must_show("goes on after a failed fsync", run_lives(1, enough, Flaw::failed_sync_ignored));
  must_show("the marker of a clean close is not removed", run_lives(1, enough, Flaw::marker_stays));
  must_show("the marker is removed, but not for good",
            run_lives(1, enough, Flaw::marker_removed_without_sync));
  must_show("leftovers are removed before the present is safe",
            run_lives(1, enough, Flaw::opened_without_directory_sync));
  must_show("a failed write is not taken back", run_lives(1, enough, Flaw::failed_write_stays));
  must_show("a short write is taken for a whole one", run_lives(1, enough, Flaw::short_write_ignored));
}

TEST_CASE("a flaw of the program around the journal is caught") {
  must_show("acknowledges before the fsync",
            run_lives(1, enough, Flaw::none, {.acknowledges_before_sync = true}));
  must_show("goes on in a log that a failed fsync may have left",
            run_lives(1, enough, Flaw::none, {.trusts_what_it_reads = true}));
}

TEST_CASE("a flaw of the checks is caught") {
  must_show("no checksums", run_lives<NoChecksums>(1, enough));
  CHECK(flip_every_bit<NoChecksums>(End::closed).wrong != "");
  must_show("a checksum that zeros do not disturb", run_lives<AddsBytes>(1, enough));
  CHECK(flip_every_bit<StopsAtFirstBadFrame>(End::killed).wrong != "");
}

TEST_CASE("what is caught is the flaw: without one, nothing is wrong") {
  CHECK(run_lives(1, enough).wrong == "");
}
