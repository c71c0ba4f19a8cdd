#include <keyfold/detail/core_access.hpp>
#include <keyfold/detail/merge_plan.hpp>
#include <keyfold/detail/plan.hpp>
#include <keyfold/keyfold.hpp>

#include <deque>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "support/catch.hpp"

namespace kf = keyfold;
using kf::detail::Holder;
using kf::detail::Outcome;
using kf::detail::Plan;
using kf::detail::Slot;

namespace {

struct Row {
  int id = 0;
  int value = 0;
  bool operator==(const Row&) const = default;
};

std::deque<Slot<Row>> slots(int count) {
  std::deque<Slot<Row>> out;
  for (int i = 0; i < count; ++i) out.emplace_back(Holder<Row>(Row{i, 0}));
  return out;
}

using Core = kf::detail::Core<Row, kf::Key<&Row::id>>;

auto update_and_count_the_rest() {
  return kf::merge_rule<Row>()
      .when_matched()
      .update_all()
      .when_not_matched()
      .insert_all()
      .when_not_matched_by_source()
      .update(kf::target<&Row::value> = kf::target<&Row::value> + 100);
}

kf::Metrics merge(Core& core, const std::vector<Row>& rows) {
  const auto rule = update_and_count_the_rest();
  auto plan = core.new_plan();
  kf::detail::MergePlanner<Core, std::remove_const_t<decltype(rule)>, const std::vector<Row>&>(core, rule,
                                                                                               plan)
      .run(rows);
  kf::detail::validate(core, plan);
  kf::detail::apply(core, plan, {.operation = "MERGE"});
  return plan.metrics;
}

std::vector<Row> rows_of(const Core& core) {
  std::vector<Row> out;
  for (const auto& slot : core.rows) out.push_back(slot.get());
  return out;
}

kf::detail::PlanMemory<Row> memory;

}  // namespace

TEST_CASE("a row is touched once a plan has an entry for it") {
  const auto rows = slots(3);
  Plan<Row> plan(1, memory);
  for (const auto& slot : rows) CHECK(plan.touched(slot) == nullptr);
  plan.touch(rows[1]).outcome = Outcome::erase;
  CHECK(plan.touched(rows[0]) == nullptr);
  REQUIRE(plan.touched(rows[1]) != nullptr);
  CHECK(plan.touched(rows[1])->slot == &rows[1]);
  CHECK(plan.touched(rows[1])->outcome == Outcome::erase);
  CHECK(plan.touched(rows[2]) == nullptr);
}

TEST_CASE("entries for new rows touch no row") {
  const auto rows = slots(2);
  Plan<Row> plan(1, memory);
  plan.add().outcome = Outcome::insert;
  plan.touch(rows[0]);
  plan.add().outcome = Outcome::insert;
  CHECK(plan.entries.size() == 3);
  CHECK(plan.touched(rows[0]) == &plan.entries[1]);
  CHECK(plan.touched(rows[1]) == nullptr);
}

TEST_CASE("the entry that a row got last is the one that counts") {
  const auto rows = slots(2);
  Plan<Row> plan(1, memory);
  plan.touch(rows[0]).outcome = Outcome::seen;
  plan.touch(rows[1]).outcome = Outcome::update;
  plan.touch(rows[0]).outcome = Outcome::erase;
  CHECK(plan.touched(rows[0])->outcome == Outcome::erase);
}

TEST_CASE("marks of a plan that was given up do not count in the next") {
  const auto rows = slots(3);
  {
    Plan<Row> plan(1, memory);
    for (const auto& slot : rows) plan.touch(slot);
  }
  Plan<Row> next(2, memory);
  for (const auto& slot : rows) CHECK(next.touched(slot) == nullptr);
}

// Two to the 32nd plans later an epoch comes again, and with it the marks of a plan long gone.
TEST_CASE("marks of an old plan with the same epoch do not count") {
  const auto rows = slots(3);
  {
    Plan<Row> old(7, memory);
    for (const auto& slot : rows) old.touch(slot);
  }
  Plan<Row> plan(7, memory);
  for (const auto& slot : rows) CHECK(plan.touched(slot) == nullptr);
  plan.touch(rows[2]);  // entry 0, which the mark of row 0 means
  CHECK(plan.touched(rows[0]) == nullptr);
  CHECK(plan.touched(rows[1]) == nullptr);
  CHECK(plan.touched(rows[2]) == &plan.entries[0]);
  plan.add();  // entry 1, which the mark of row 1 means
  CHECK(plan.touched(rows[1]) == nullptr);
  plan.touch(rows[0]);
  CHECK(plan.touched(rows[0]) == &plan.entries[2]);
  CHECK(plan.touched(rows[2]) == &plan.entries[0]);
}

TEST_CASE("a row that was never touched is not so in a plan of epoch 0") {
  const auto rows = slots(2);
  Plan<Row> plan(0, memory);
  CHECK(plan.touched(rows[0]) == nullptr);
  plan.add();
  CHECK(plan.touched(rows[0]) == nullptr);
  plan.touch(rows[1]);
  CHECK(plan.touched(rows[0]) == nullptr);
}

TEST_CASE("marks agree with a set, whatever plans of whatever epochs came before") {
  const auto rows = slots(12);
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    Plan<Row> plan(static_cast<std::uint32_t>(random() % 3), memory);
    std::set<const Slot<Row>*> model;
    const auto steps = random() % 16;
    for (std::size_t step = 0; step < steps; ++step) {
      const auto& slot = rows[random() % rows.size()];
      if (random() % 4 == 0) {
        plan.add();
      } else if (model.insert(&slot).second) {
        plan.touch(slot);
      }
    }
    bool agrees = true;
    for (const auto& slot : rows) agrees = agrees && (plan.touched(slot) != nullptr) == model.contains(&slot);
    REQUIRE(agrees);
  }
}

TEST_CASE("merges go on over the wrap-around of the epoch") {
  Core core({});
  core.epoch = std::numeric_limits<std::uint32_t>::max() - 3;
  merge(core, {{1, 0}, {2, 0}, {3, 0}});
  for (int round = 1; round <= 8; ++round) {
    INFO("epoch " << core.epoch);
    const int id = round % 3 + 1;
    std::vector<Row> expected = rows_of(core);
    for (Row& row : expected) row.value = row.id == id ? round : row.value + 100;
    const kf::Metrics metrics = merge(core, {{id, round}});
    CHECK(metrics.matched_updated == 1);
    CHECK(metrics.not_matched_by_source_updated == 2);
    CHECK(rows_of(core) == expected);
  }
  CHECK(core.epoch == 5);
}

TEST_CASE("the change set of a plan has its changes in order, and nothing else") {
  const auto rows = slots(4);
  Plan<Row> plan(1, memory);
  plan.touch(rows[0]).outcome = Outcome::erase;
  plan.touch(rows[1]).outcome = Outcome::seen;
  plan.touch(rows[2]).outcome = Outcome::unchanged;
  auto& insert = plan.add();
  insert.outcome = Outcome::insert;
  insert.after.emplace(Row{9, 9});
  auto& update = plan.touch(rows[3]);
  update.outcome = Outcome::update;
  update.after.emplace(Row{3, 8});

  const auto changes =
      kf::detail::to_change_set(plan, kf::detail::key_functions<kf::detail::Parts<&Row::id>, Row>);
  REQUIRE(changes.size() == 3);
  CHECK(changes[0] == kf::Change<Row>::erase({0, 0}));
  CHECK(changes[1] == kf::Change<Row>::insert({9, 9}));
  CHECK(changes[2] == kf::Change<Row>::update({3, 0}, {3, 8}));
}

TEST_CASE("a plan leaves its room to the next, unless that is too much") {
  kf::detail::PlanMemory<Row> room;
  const auto plan_with = [&](std::size_t entries) {
    Plan<Row> plan(1, room);
    for (std::size_t i = 0; i < entries; ++i) plan.add();
  };
  room.most_kept = 1000 * sizeof(kf::detail::Planned<Row>);
  plan_with(500);
  const std::size_t kept = room.entries.capacity();
  CHECK(kept >= 500);
  plan_with(400);
  CHECK(room.entries.capacity() == kept);
  plan_with(2000);
  CHECK(room.entries.capacity() == 0);
}

TEST_CASE("a table keeps room for a plan of an eighth of its rows' memory") {
  kf::Table<Row, kf::Key<&Row::id>> table;
  auto& core = kf::detail::CoreAccess::core(table);
  CHECK(core.new_plan().entries.empty());
  CHECK(core.plan_memory.most_kept == 256 * 1024);
  std::vector<Row> rows;
  for (int i = 0; i < 200'000; ++i) rows.push_back(Row{i, 0});
  table.append(rows);
  const std::size_t most = table.memory_usage().rows / 8;
  const auto kept_after = [&](std::size_t count) {
    table.upsert(std::vector<Row>(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(count)));
    return core.plan_memory.entries.capacity();
  };
  const std::size_t fits = most / sizeof(kf::detail::Planned<Row>);
  REQUIRE(fits * sizeof(kf::detail::Planned<Row>) > 256 * 1024);
  CHECK(kept_after(2 * fits) == 0);
  CHECK(kept_after(fits) == fits);
  CHECK(kept_after(3) == fits);
}

TEST_CASE("what is planned is set out by what becomes of it") {
  using Logged = kf::detail::LogEntry<Row>;
  std::mt19937_64 random(2);
  for (int round = 0; round < 500; ++round) {
    auto rows = slots(40);
    Plan<Row> plan(1, memory);
    CHECK(plan.placed().size() == 0);
    CHECK(plan.others().size() == 0);
    const std::size_t size = round == 0 ? 0 : 1 + random() % 40;
    for (std::size_t i = 0; i < size; ++i) {
      const auto outcome = static_cast<Outcome>(random() % 5);
      auto& entry = outcome == Outcome::insert ? plan.add() : plan.touch(rows[i]);
      entry.outcome = outcome;
      entry.key_known = random() % 2 == 0;
    }
    plan.set_out([&](auto& entry) {
      entry.hash = random();
      entry.rekeyed = entry.outcome == Outcome::update && random() % 3 == 0;
      entry.relinked = entry.outcome == Outcome::update && random() % 3 == 0;
      if (entry.rekeyed) plan.turn_of(entry).hash_before = random();
    });

    const auto check_log = [&] {
      std::size_t end = 0;
      kf::detail::EntryCounts counts;
      std::size_t departures = 0;
      for (const auto& entry : plan.entries) {
        CHECK(entry.log_place * Logged::alignment == end);
        const bool known_key = entry.turn != 0;
        switch (entry.outcome) {
          case Outcome::seen:
          case Outcome::unchanged:
            break;
          case Outcome::insert:
            ++(known_key ? counts.bare : counts.firsts);
            end += known_key ? Logged::bare_size : Logged::first_size;
            break;
          case Outcome::update:
          case Outcome::erase:
            ++counts.images;
            end += Logged::image_size;
            if (entry.rekeyed) ++counts.bare;
            if (entry.rekeyed) end += Logged::bare_size;
            if (entry.rekeyed || entry.outcome == Outcome::erase) ++departures;
        }
      }
      CHECK(plan.counts.log.firsts == counts.firsts);
      CHECK(plan.counts.log.bare == counts.bare);
      CHECK(plan.counts.log.images == counts.images);
      CHECK(plan.counts.departures == departures);
    };
    check_log();

    std::vector<const kf::detail::Planned<Row>*> placed;
    std::vector<const kf::detail::Planned<Row>*> others;
    std::vector<std::uint64_t> arrivals;
    for (const auto& entry : plan.entries) {
      if (entry.outcome < Outcome::insert) continue;
      const bool arrives = entry.outcome == Outcome::insert || entry.rekeyed;
      (arrives || entry.relinked ? placed : others).push_back(&entry);
      if (arrives) arrivals.push_back(entry.hash);
    }
    REQUIRE(plan.placed().size() == placed.size());
    REQUIRE(plan.others().size() == others.size());
    for (std::size_t i = 0; i < placed.size(); ++i) {
      CHECK(&plan.placed()[i] == placed[i]);
      const kf::detail::PlanStep& step = plan.placed().step(i);
      CHECK(step.hash == placed[i]->hash);
      CHECK(step.arrives_at_key() == (placed[i]->outcome == Outcome::insert || placed[i]->rekeyed));
      CHECK(step.key_known() == placed[i]->key_known);
    }
    for (std::size_t i = 0; i < others.size(); ++i) CHECK(&plan.others()[i] == others[others.size() - 1 - i]);
    std::vector<std::uint64_t> visited;
    plan.placed().for_each_arrival([&](std::uint64_t hash) { visited.push_back(hash); });
    CHECK(visited == arrivals);

    for (auto& entry : plan.entries) {
      if (entry.outcome == Outcome::insert && random() % 2 == 0) plan.turn_of(entry);
    }
    plan.place_in_log();
    check_log();
  }
}
