// Random programs of writes against the naive model of model_test.cpp, on another table: a composite ordered
// key with an absent and a floating part, a composite unique constraint, a composite ordered index, one over
// a callable, and rows without a column list.
#include <keyfold/keyfold.hpp>

#include <cmath>
#include <limits>
#include <tuple>

#include "support/program.hpp"

namespace kf = keyfold;

namespace {

using keyfold_test::Digits;
using keyfold_test::Params;
using keyfold_test::model::Do;
using keyfold_test::model::Fault;
using keyfold_test::model::Policy;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

struct Reading {
  std::optional<int> day;
  double hour = 0;
  std::optional<int> serial;
  int batch = 0;
  double value = 0;
  std::string note;
  bool operator==(const Reading&) const = default;
};

struct Signal {
  char op = 'U';
  std::optional<int> on_day;
  double at = 0;
  std::optional<int> serial;
  int batch = 0;
  double value = 0;
  std::string note;
};

// The last letter of the note, in lower case: a key that ignores case.
char folded(const std::string& note) { return note.empty() ? ' ' : static_cast<char>(note.back() | ' '); }
constexpr auto letter = [](const Reading& row) { return folded(row.note); };
constexpr auto signal_letter = [](const Signal& row) { return folded(row.note); };

std::string text(double value) { return std::isnan(value) ? "nan" : std::to_string(value); }
std::string text(std::optional<int> value) { return value ? std::to_string(*value) : "NULL"; }

bool same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// NaN after all numbers.
bool less_number(double a, double b) { return a < b || (!std::isnan(a) && std::isnan(b)); }

struct ReadingSchema {
  using Row = Reading;
  using Source = Signal;
  using Table = kf::Table<Reading, kf::OrderedKey<&Reading::day, &Reading::hour>,
                          kf::UniqueBy<&Reading::serial, &Reading::batch>,
                          kf::OrderedBy<&Reading::batch, &Reading::value>, kf::HashedBy<letter>>;

  static bool same(const Reading& a, const Reading& b) {
    return same_key(a, b) && a.serial == b.serial && a.batch == b.batch && same_number(a.value, b.value) &&
           a.note == b.note;
  }
  static bool same_key(const Reading& a, const Reading& b) {
    return a.day == b.day && same_number(a.hour, b.hour);
  }
  static bool invalid_key(const Reading& row) { return std::isnan(row.hour); }
  static bool collide(const Reading& a, const Reading& b) {
    return a.serial && b.serial && *a.serial == *b.serial && a.batch == b.batch;
  }
  static bool before(const Reading& a, const Reading& b) {
    if (a.day != b.day) return !a.day || (b.day && *a.day < *b.day);
    return a.hour < b.hour;
  }
  static void arrange(std::vector<Reading>& rows) { std::stable_sort(rows.begin(), rows.end(), before); }
  static std::string key_text(const Reading&) { return {}; }
  static std::string unique_text(const Reading& row) {
    return "(" + std::to_string(*row.serial) + ", " + std::to_string(row.batch) + ")";
  }

  static std::string text(const Reading& row) {
    return "day " + ::text(row.day) + " hour " + ::text(row.hour) + " serial " + ::text(row.serial) +
           " batch " + std::to_string(row.batch) + " value " + ::text(row.value) + " note '" + row.note + "'";
  }

  static const Reading* find(const Table& table, const Reading& row) { return table.find(row.day, row.hour); }
  static auto erase(Table& table, const Reading& row) { return table.erase(row.day, row.hour); }

  static bool same_source_key(const Signal& a, const Signal& b) {
    return a.on_day == b.on_day && same_number(a.at, b.at);
  }
  static Signal source(Digits digits, int keys) {
    constexpr double hours[] = {0.0, -0.0, 1, 2.5, 4, 7, 11};
    constexpr double values[] = {0.0, -0.0, 1, 2, nan, -1};
    constexpr const char* notes[] = {"", "a", "A", "b"};
    Signal row;
    row.on_day = digits.maybe_below(keys / 4);
    row.at = hours[digits.below(keys / 2 < 7 ? keys / 2 : 7)];
    if (digits.below(150) == 149) row.at = nan;
    if (digits.below(2) == 1) row.serial = digits.below(keys);
    row.batch = digits.below(3);
    row.value = values[digits.below(6)];
    row.note = notes[digits.below(4)];
    row.op = "DDXUUUUU"[digits.below(8)];
    return row;
  }
  static std::optional<Reading> row(const Signal& s) {
    return Reading{s.on_day, s.at, s.serial, s.batch, s.value, s.note};
  }

  template <class Found, class Matches>
  static void check_found(const Table& table, const Found& found, const std::vector<Reading>& rows,
                          Matches matches) {
    keyfold_test::check_found<ReadingSchema>(table, rows, found, matches);
  }

  static void check_indexes(const Table& table, const std::vector<Reading>& rows) {
    check_key(table, rows);
    check_unique(table, rows);
    check_batches(table, rows);
    const auto by_letter = table.by<letter>();
    RC_ASSERT(by_letter.size() == rows.size());
    for (const char c : {' ', 'a', 'b', 'c'}) {
      check_found(table, by_letter.equal_range(c), rows,
                  [&](const Reading& row) { return folded(row.note) == c; });
    }
  }

  static void check_key(const Table& table, const std::vector<Reading>& rows) {
    const auto by_key = table.by<&Reading::day, &Reading::hour>();
    for (const auto day : {std::optional<int>(), std::optional<int>(0), std::optional<int>(1)}) {
      check_found(table, by_key.equal_range(day), rows, [&](const Reading& row) { return row.day == day; });
    }
    check_found(table, by_key.range(std::tuple(0, 1.0), std::tuple(1, 2.5)), rows, [](const Reading& row) {
      return (row.day == 0 && row.hour >= 1) || (row.day == 1 && row.hour < 2.5);
    });
    check_found(table, by_key.range(std::nullopt, 1), rows,
                [](const Reading& row) { return !row.day || *row.day < 1; });
  }

  static void check_unique(const Table& table, const std::vector<Reading>& rows) {
    const auto index = table.by<&Reading::serial, &Reading::batch>();
    RC_ASSERT(index.size() == rows.size());
    for (const Reading& row : rows) {
      check_found(table, index.equal_range(row.serial, row.batch), rows, [&](const Reading& other) {
        return other.serial == row.serial && other.batch == row.batch;
      });
    }
    RC_ASSERT(!index.contains(-1, 0));
  }

  static void check_batches(const Table& table, const std::vector<Reading>& rows) {
    const auto index = table.by<&Reading::batch, &Reading::value>();
    RC_ASSERT(index.size() == rows.size());
    const Reading* last = nullptr;
    for (const Reading& row : index) {
      if (last != nullptr) {
        RC_ASSERT(last->batch <= row.batch);
        RC_ASSERT((last->batch < row.batch || !less_number(row.value, last->value)));
      }
      last = &row;
    }
    for (int batch = 0; batch < 4; ++batch) {
      check_found(table, index.equal_range(batch), rows,
                  [&](const Reading& row) { return row.batch == batch; });
      check_found(table, index.equal_range(batch, nan), rows,
                  [&](const Reading& row) { return row.batch == batch && std::isnan(row.value); });
      check_found(
          table, index.range(std::tuple(batch, 0.0), std::tuple(batch, infinity)), rows,
          [&](const Reading& row) { return row.batch == batch && row.value >= 0 && row.value < infinity; });
    }
    check_found(table, index.range(2, 1), rows, [](const Reading&) { return false; });
  }
};

using Shape = keyfold_test::Shape<ReadingSchema>;
using C = keyfold_test::Clauses<Reading, Signal>;
using Own = keyfold_test::Clauses<Reading, Reading>;
using Rule = keyfold_test::model::Rule<Reading, Signal>;
using OwnRule = keyfold_test::model::Rule<Reading, Reading>;

Rule by_key(std::vector<C::Clause> clauses) {
  Rule rule;
  rule.matches = [](const Reading& t, const Signal& s) { return t.day == s.on_day && t.hour == s.at; };
  rule.same_key = ReadingSchema::same_source_key;
  rule.invalid_key = [](const Signal& s) { return std::isnan(s.at); };
  rule.clauses = std::move(clauses);
  return rule;
}

OwnRule by_own_key(std::vector<Own::Clause> clauses) {
  OwnRule rule{ReadingSchema::same_key, ReadingSchema::same_key};
  rule.invalid_key = ReadingSchema::invalid_key;
  rule.clauses = std::move(clauses);
  return rule;
}

Rule choosing(Rule rule, std::function<bool(const Signal&, const Signal&)> prefer_later) {
  rule.policy = Policy::choose;
  rule.prefer_later = std::move(prefer_later);
  return rule;
}

Reading row_of(const Signal& s) { return *ReadingSchema::row(s); }
Reading whole(const Reading&, const Reading& s) { return s; }

template <class Make, class ModelRule>
Shape own_shape(std::string name, Make make, ModelRule rule) {
  return keyfold_test::shape_of<ReadingSchema, Reading>(std::move(name), row_of, make, rule);
}

void add_by_key(std::vector<Shape>& shapes) {
  shapes.push_back(own_shape(
      "greater wins",
      [](auto host, Params) {
        return std::move(host)
            .when_matched(kf::source<&Reading::value> >= kf::target<&Reading::value>)
            .update_all()
            .when_not_matched(!kf::is_null(kf::source<&Reading::day>) || kf::source<&Reading::hour> < 3)
            .insert_all();
      },
      [](Params) {
        return by_own_key({Own::matched([](const Reading& t, const Reading& s) { return s.value >= t.value; },
                                        Do::write, whole),
                           Own::missing([](const Reading& s) { return s.day || s.hour < 3; }, Do::write,
                                        [](const Reading& s) { return s; })});
      }));
  shapes.push_back(own_shape(
      "sync of one day, rewriting",
      [](auto host, Params p) {
        return std::move(host)
            .rewrite_unchanged()
            .duplicates(kf::keep_first)
            .on_condition(kf::same(kf::target<&Reading::batch>, p.b))
            .when_matched()
            .update_all()
            .when_not_matched_by_source(kf::target<&Reading::batch> == p.b)
            .erase();
      },
      [](Params p) {
        OwnRule rule = by_own_key({Own::matched({}, Do::write, whole),
                                   Own::left([p](const Reading& t) { return t.batch == p.b; }, Do::erase)});
        rule.matches = [p](const Reading& t, const Reading& s) {
          return ReadingSchema::same_key(t, s) && t.batch == p.b;
        };
        rule.policy = Policy::choose;
        rule.prefer_later = [](const Reading&, const Reading&) { return false; };
        rule.rewrite_unchanged = true;
        return rule;
      }));
  shapes.push_back(keyfold_test::shape<ReadingSchema>(
      "key under other names",
      [](auto host, Params p) {
        return std::move(host)
            .template on<&Signal::on_day, &Signal::at>()
            .when_matched(kf::source<&Signal::op> == 'D')
            .erase()
            .when_matched()
            .update(
                kf::target<&Reading::value> = kf::target<&Reading::value> * p.b - kf::source<&Signal::value>,
                kf::target<&Reading::note> = kf::source<&Signal::note> + "b")
            .when_not_matched(kf::source<&Signal::op> == 'U')
            .insert(kf::target<&Reading::day> = kf::source<&Signal::on_day>,
                    kf::target<&Reading::hour> = kf::source<&Signal::at>,
                    kf::target<&Reading::serial> = kf::source<&Signal::serial>,
                    kf::target<&Reading::batch> = kf::source<&Signal::batch> + 0);
      },
      [](Params p) {
        return by_key(
            {C::matched([](const Reading&, const Signal& s) { return s.op == 'D'; }, Do::erase),
             C::matched({}, Do::write,
                        [p](Reading t, const Signal& s) {
                          t.value = t.value * p.b - s.value;
                          t.note = s.note + "b";
                          return t;
                        }),
             C::missing([](const Signal& s) { return s.op == 'U'; }, Do::write,
                        [](const Signal& s) { return Reading{s.on_day, s.at, s.serial, s.batch, 0, ""}; })});
      }));
  shapes.push_back(keyfold_test::shape<ReadingSchema>(
      "full copy, the greatest of duplicates",
      [](auto host, Params) {
        return std::move(host)
            .template on<&Signal::on_day, &Signal::at>()
            .duplicates(kf::latest_by<&Signal::value>)
            .when_matched()
            .update([](const Reading&, const Signal& s) { return row_of(s); })
            .when_not_matched()
            .insert(row_of)
            .when_not_matched_by_source(!(kf::target<&Reading::serial> > 2))
            .erase();
      },
      [](Params) {
        return choosing(
            by_key({C::matched({}, Do::write, [](const Reading&, const Signal& s) { return row_of(s); }),
                    C::missing({}, Do::write, row_of),
                    C::left([](const Reading& t) { return t.serial && *t.serial <= 2; }, Do::erase)}),
            [](const Signal& a, const Signal& b) { return !less_number(b.value, a.value); });
      }));
}

void add_key_changes(std::vector<Shape>& shapes) {
  shapes.push_back(keyfold_test::shape<ReadingSchema>(
      "new hours, NaN among them",
      [](auto host, Params) {
        return std::move(host)
            .template on<&Signal::on_day, &Signal::at>()
            .when_matched()
            .update(kf::target<&Reading::hour> = kf::source<&Signal::value>,
                    kf::target<&Reading::day> = kf::source<&Signal::serial>,
                    kf::target<&Reading::serial> = kf::target<&Reading::day>)
            .when_not_matched(kf::source<&Signal::batch> == 0)
            .insert(row_of);
      },
      [](Params) {
        return by_key({C::matched({}, Do::write,
                                  [](Reading t, const Signal& s) {
                                    t.hour = s.value;
                                    const auto day = t.day;
                                    t.day = s.serial;
                                    t.serial = day;
                                    return t;
                                  }),
                       C::missing([](const Signal& s) { return s.batch == 0; }, Do::write, row_of)});
      }));
  shapes.push_back(keyfold_test::shape<ReadingSchema>(
      "mirror the hours of what is left",
      [](auto host, Params p) {
        return std::move(host)
            .template on<&Signal::on_day, &Signal::at>()
            .when_matched(kf::source<&Signal::op> == 'X')
            .raise("matched")
            .when_not_matched()
            .insert(row_of)
            .when_not_matched_by_source(kf::target<&Reading::hour> <= p.a)
            .update([p](Reading row) {
              row.hour = p.a - row.hour;
              row.batch = 2 - row.batch;
              return row;
            });
      },
      [](Params p) {
        return by_key({C::matched([](const Reading&, const Signal& s) { return s.op == 'X'; }, Do::raise),
                       C::missing({}, Do::write, row_of),
                       C::left([p](const Reading& t) { return t.hour <= p.a; }, Do::write,
                               [p](Reading t) {
                                 t.hour = p.a - t.hour;
                                 t.batch = 2 - t.batch;
                                 return t;
                               })});
      }));
}

void add_by_index(std::vector<Shape>& shapes) {
  const std::size_t first = shapes.size();
  shapes.push_back(keyfold_test::shape<ReadingSchema>(
      "through the ordered index",
      [](auto host, Params p) {
        return std::move(host)
            .template on<&Signal::batch, &Signal::value>(kf::by<&Reading::batch, &Reading::value>)
            .when_matched(kf::source<&Signal::op> == 'D')
            .erase()
            .when_matched(kf::target<&Reading::hour> > p.b)
            .update(kf::target<&Reading::batch> = p.b)
            .when_not_matched(kf::source<&Signal::op> == 'X')
            .insert(row_of);
      },
      [](Params p) {
        Rule rule =
            by_key({C::matched([](const Reading&, const Signal& s) { return s.op == 'D'; }, Do::erase),
                    C::matched([p](const Reading& t, const Signal&) { return t.hour > p.b; }, Do::write,
                               [p](Reading t, const Signal&) {
                                 t.batch = p.b;
                                 return t;
                               }),
                    C::missing([](const Signal& s) { return s.op == 'X'; }, Do::write, row_of)});
        rule.matches = [](const Reading& t, const Signal& s) {
          return t.batch == s.batch && same_number(t.value, s.value);
        };
        rule.invalid_key = [](const Signal&) { return false; };
        return rule;
      }));
  shapes.push_back(keyfold_test::shape<ReadingSchema>(
      "through the unique index",
      [](auto host, Params) {
        return std::move(host)
            .template on<&Signal::serial, &Signal::batch>(kf::by<&Reading::serial, &Reading::batch>)
            .when_matched()
            .update([](const Reading& t, const Signal& s) {
              Reading out = row_of(s);
              out.hour = t.hour;
              return out;
            })
            .when_not_matched_by_source(kf::is_null(kf::target<&Reading::serial>) &&
                                        kf::target<&Reading::value> == 1)
            .update(kf::target<&Reading::serial> = 3);
      },
      [](Params) {
        Rule rule = by_key({C::matched({}, Do::write,
                                       [](const Reading& t, const Signal& s) {
                                         Reading out = row_of(s);
                                         out.hour = t.hour;
                                         return out;
                                       }),
                            C::left([](const Reading& t) { return !t.serial && t.value == 1; }, Do::write,
                                    [](Reading t) {
                                      t.serial = 3;
                                      return t;
                                    })});
        rule.matches = [](const Reading& t, const Signal& s) {
          return t.serial && t.serial == s.serial && t.batch == s.batch;
        };
        rule.invalid_key = [](const Signal&) { return false; };
        return rule;
      }));
  shapes.push_back(keyfold_test::shape<ReadingSchema>(
      "through a callable index, folded",
      [](auto host, Params) {
        return std::move(host)
            .template on<signal_letter>(kf::by<letter>)
            .duplicates(kf::fold([](Signal folded_row, const Signal& next) {
              folded_row.value += next.value;
              return folded_row;
            }))
            .when_matched()
            .update(kf::target<&Reading::value> = kf::source<&Signal::value>);
      },
      [](Params) {
        Rule rule = by_key({C::matched({}, Do::write, [](Reading t, const Signal& s) {
          t.value = s.value;
          return t;
        })});
        rule.matches = [](const Reading& t, const Signal& s) { return folded(t.note) == folded(s.note); };
        rule.same_key = [](const Signal& a, const Signal& b) { return folded(a.note) == folded(b.note); };
        rule.invalid_key = [](const Signal&) { return false; };
        rule.policy = Policy::fold;
        rule.fold = [](Signal a, const Signal& b) {
          a.value += b.value;
          return a;
        };
        return rule;
      }));
  for (std::size_t i = first; i < shapes.size(); ++i) shapes[i].any_order = true;
}

std::vector<Shape> all_shapes() {
  std::vector<Shape> shapes;
  add_by_key(shapes);
  add_key_changes(shapes);
  add_by_index(shapes);
  return shapes;
}

}  // namespace

TEST_CASE("random programs on an ordered table do what the model does", "[model]") {
  const std::vector<Shape> shapes = all_shapes();
  keyfold_test::Tally tally;
  keyfold_test::Runner<ReadingSchema> runner(shapes, tally);
  keyfold_test::check_property("table and model agree", 3000,
                               [&] { runner.run(*keyfold_test::programs(shapes.size())); });
  if (keyfold_test::scaled(100) < 100) return;
  for (const Fault fault : {Fault::duplicate_source_key, Fault::duplicate_key, Fault::unique_violation,
                            Fault::invalid_key, Fault::raised}) {
    INFO("fault " << static_cast<int>(fault));
    CHECK(tally.faults[fault] > 20);
  }
  for (const Shape& shape : shapes) {
    INFO(shape.name);
    CHECK(tally.effective[shape.name] > 50);
  }
  CHECK(tally.rekeyed > 200);
}
