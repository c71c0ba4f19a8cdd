// Random programs of writes against a naive model: a table with a hashed key, a unique constraint, a hashed
// and an ordered index, columns that may be absent or NaN, and an ignored one. Each rule stands here twice,
// once as clauses of the library and once as the plain condition and assignment that the model runs. labels:
// slow
#include <keyfold/keyfold.hpp>

#include <boost/describe/class.hpp>

#include <cmath>
#include <limits>

#include "support/program.hpp"

namespace kf = keyfold;

namespace {

using keyfold_test::Digits;
using keyfold_test::Params;
using keyfold_test::UsersOwn;
using keyfold_test::model::Do;
using keyfold_test::model::Failure;
using keyfold_test::model::Fault;
using keyfold_test::model::Policy;

struct Item {
  int id = 0;
  std::optional<int> code;
  std::optional<int> group;
  double amount = 0;
  std::optional<std::string> note;
  std::optional<int> stamp;
  std::int8_t level = 0;
  int cache = 0;
};
BOOST_DESCRIBE_STRUCT(Item, (), (id, code, group, amount, note, stamp, level))

struct Change {
  char op = 'U';
  long id = 0;
  int next_id = 0;
  std::optional<int> code;
  std::optional<int> group;
  double amount = 0;
  std::optional<std::string> note;
  std::optional<int> stamp;
  int level = 0;
};
BOOST_DESCRIBE_STRUCT(Change, (), (op, id, next_id, code, group, amount, note, stamp, level))

}  // namespace

template <>
struct keyfold::columns_of<Item> : keyfold::DescribedColumns<Item>, keyfold::Ignored<&Item::cache> {};

namespace {

// --- What the columns mean

std::string text(std::optional<int> value) { return value ? std::to_string(*value) : "NULL"; }

bool same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

struct ItemSchema {
  using Row = Item;
  using Source = Change;
  using Table = kf::Table<Item, kf::Key<&Item::id>, kf::UniqueBy<&Item::code>, kf::HashedBy<&Item::group>,
                          kf::OrderedBy<&Item::amount>>;

  static bool same(const Item& a, const Item& b) {
    return a.id == b.id && a.code == b.code && a.group == b.group && same_number(a.amount, b.amount) &&
           a.note == b.note && a.stamp == b.stamp && a.level == b.level;
  }
  static bool same_key(const Item& a, const Item& b) { return a.id == b.id; }
  static bool invalid_key(const Item&) { return false; }
  static bool collide(const Item& a, const Item& b) { return a.code && b.code && *a.code == *b.code; }
  static void arrange(std::vector<Item>&) {}
  static std::string key_text(const Item& row) { return std::to_string(row.id); }
  static std::string unique_text(const Item& row) { return std::to_string(*row.code); }

  static std::string text(const Item& row) {
    return std::to_string(row.id) + " code " + ::text(row.code) + " group " + ::text(row.group) + " amount " +
           (std::isnan(row.amount) ? "nan" : std::to_string(row.amount)) + " note " +
           (row.note ? "'" + *row.note + "'" : "NULL") + " stamp " + ::text(row.stamp) + " level " +
           std::to_string(row.level) + " cache " + std::to_string(row.cache);
  }

  static const Item* find(const Table& table, const Item& row) { return table.find(row.id); }
  static auto erase(Table& table, const Item& row) { return table.erase(row.id); }

  static bool same_source_key(const Change& a, const Change& b) { return a.id == b.id; }
  static Change source(Digits digits, int keys) {
    constexpr double amounts[] = {0.0, -0.0, 1.0, 2.5, std::numeric_limits<double>::quiet_NaN()};
    constexpr const char* notes[] = {"", "x", "it's"};
    Change row;
    row.id = digits.below(keys);
    row.next_id = digits.below(keys);
    if (digits.below(2) == 1) row.code = digits.below(2 * keys);
    row.op = "DDXUUUUU"[digits.below(8)];
    row.group = digits.maybe_below(3);
    row.amount = amounts[digits.below(5)];
    if (const auto note = digits.maybe_below(3)) row.note = notes[*note];
    row.stamp = digits.maybe_below(4);
    row.level = digits.below(40);
    if (row.level == 39) row.level = 1000;
    return row;
  }
  static std::optional<Item> row(const Change& s) {
    if (s.level > 127) return std::nullopt;
    Item out{static_cast<int>(s.id),
             s.code,
             s.group,
             s.amount,
             s.note,
             s.stamp,
             static_cast<std::int8_t>(s.level),
             s.next_id};
    return out;
  }

  static void check_indexes(const Table& table, const std::vector<Item>& rows) {
    const auto by_code = table.by<&Item::code>();
    const auto by_group = table.by<&Item::group>();
    const auto by_amount = table.by<&Item::amount>();
    RC_ASSERT(by_code.size() == rows.size());
    RC_ASSERT(by_group.size() == rows.size());
    RC_ASSERT(by_amount.size() == rows.size());
    const auto check = [&](const auto& found, auto matches) {
      keyfold_test::check_found<ItemSchema>(table, rows, found, matches);
    };
    for (const Item& row : rows) {
      check(by_code.equal_range(row.code), [&](const Item& other) { return other.code == row.code; });
      check(by_amount.equal_range(row.amount),
            [&](const Item& o) { return same_number(o.amount, row.amount); });
      RC_ASSERT(by_code.find(row.code) != nullptr);
    }
    for (const std::optional<int> group : {std::optional<int>(), {0}, {1}, {7}}) {
      check(by_group.equal_range(group), [&](const Item& other) { return other.group == group; });
    }
    double last = -std::numeric_limits<double>::infinity();
    for (const Item& row : by_amount) {
      RC_ASSERT(std::isnan(row.amount) || row.amount >= last);  // NaN comes last
      if (std::isnan(row.amount)) last = std::numeric_limits<double>::infinity();
      if (!std::isnan(row.amount)) last = row.amount;
    }
    for (long id = -1; id < 8; ++id) {
      const auto has_id = [&](const Item& row) { return row.id == id; };
      RC_ASSERT(table.contains(id) == std::any_of(rows.begin(), rows.end(), has_id));
    }
  }
};

// --- The rules, for the model

using Shape = keyfold_test::Shape<ItemSchema>;
using C = keyfold_test::Clauses<Item, Change>;
using Rule = keyfold_test::model::Rule<Item, Change>;

Rule by_id(std::vector<C::Clause> clauses) {
  Rule rule;
  rule.matches = [](const Item& t, const Change& s) { return t.id == s.id; };
  rule.same_key = [](const Change& a, const Change& b) { return a.id == b.id; };
  rule.clauses = std::move(clauses);
  return rule;
}

Rule choosing(Rule rule, std::function<bool(const Change&, const Change&)> prefer_later) {
  rule.policy = Policy::choose;
  rule.prefer_later = std::move(prefer_later);
  return rule;
}

std::int8_t level_of(int number) {
  if (number > 127 || number < -128) throw Failure{Fault::out_of_range};
  return static_cast<std::int8_t>(number);
}

// update_all() and insert_all() from a source of another type: all columns but the ignored one.
Item all_columns(Item out, const Change& s) {
  return {static_cast<int>(s.id), s.code, s.group, s.amount, s.note, s.stamp, level_of(s.level), out.cache};
}
Item update_all(const Item& t, const Change& s) { return all_columns(t, s); }
Item insert_all(const Change& s) { return all_columns({}, s); }

// --- The rules, twice

void add_upserts(std::vector<Shape>& shapes) {
  shapes.push_back(keyfold_test::shape<ItemSchema>(
      "upsert by column name",
      [](auto host, Params) {
        return std::move(host).when_matched().update_all().when_not_matched().insert_all();
      },
      [](Params) {
        return by_id({C::matched({}, Do::write, update_all), C::missing({}, Do::write, insert_all)});
      }));
  shapes.push_back(keyfold_test::shape<ItemSchema>(
      "newer wins, latest of duplicates",
      [](auto host, Params) {
        return std::move(host)
            .template on<&Change::id>()
            .duplicates(kf::latest_by<&Change::stamp>)
            .when_matched(kf::source<&Change::stamp> > kf::target<&Item::stamp>)
            .update_all()
            .when_not_matched()
            .insert_all();
      },
      [](Params) {
        const auto newer = [](const Item& t, const Change& s) {
          return s.stamp && t.stamp && *s.stamp > *t.stamp;
        };
        return choosing(
            by_id({C::matched(newer, Do::write, update_all), C::missing({}, Do::write, insert_all)}),
            [](const Change& a, const Change& b) { return b.stamp.value_or(-1) >= a.stamp.value_or(-1); });
      }));
  shapes.push_back(keyfold_test::shape<ItemSchema>(
      "rewrite unchanged",
      [](auto host, Params p) {
        return std::move(host)
            .rewrite_unchanged()
            .when_matched(kf::source<&Change::id> >= p.a)
            .update(kf::target<&Item::note> = kf::source<&Change::note>)
            .when_not_matched(kf::source<&Change::id> < p.a)
            .insert(kf::target<&Item::id> = kf::source<&Change::id>, kf::target<&Item::level> = p.b);
      },
      [](Params p) {
        Rule rule = by_id({C::matched([p](const Item&, const Change& s) { return s.id >= p.a; }, Do::write,
                                      [](Item t, const Change& s) {
                                        t.note = s.note;
                                        return t;
                                      }),
                           C::missing([p](const Change& s) { return s.id < p.a; }, Do::write,
                                      [p](const Change& s) {
                                        Item made;
                                        made.id = static_cast<int>(s.id);
                                        made.level = static_cast<std::int8_t>(p.b);
                                        return made;
                                      })});
        rule.rewrite_unchanged = true;
        return rule;
      }));
}

void add_deletes(std::vector<Shape>& shapes) {
  shapes.push_back(keyfold_test::shape<ItemSchema>(
      "delete flags",
      [](auto host, Params) {
        return std::move(host)
            .when_matched(kf::source<&Change::op> == 'D')
            .erase()
            .when_matched(!kf::same(kf::source<&Change::amount>, kf::target<&Item::amount>) ||
                          kf::is_null(kf::source<&Change::note>))
            .update(
                kf::target<&Item::amount> = kf::source<&Change::amount>,
                kf::target<&Item::note> = kf::coalesce(kf::source<&Change::note>, kf::target<&Item::note>))
            .when_not_matched(kf::source<&Change::op> != 'D')
            .insert_all();
      },
      [](Params) {
        return by_id({C::matched([](const Item&, const Change& s) { return s.op == 'D'; }, Do::erase),
                      C::matched([](const Item& t,
                                    const Change& s) { return !same_number(s.amount, t.amount) || !s.note; },
                                 Do::write,
                                 [](Item t, const Change& s) {
                                   t.amount = s.amount;
                                   if (s.note) t.note = s.note;
                                   return t;
                                 }),
                      C::missing([](const Change& s) { return s.op != 'D'; }, Do::write, insert_all)});
      }));
  shapes.push_back(keyfold_test::shape<ItemSchema>(
      "unconditional erase",
      [](auto host, Params) {
        return std::move(host).when_matched().erase().when_not_matched().do_nothing();
      },
      [](Params) { return by_id({C::matched({}, Do::erase), C::missing({}, Do::nothing)}); }));
  shapes.push_back(keyfold_test::shape<ItemSchema>(
      "two erase clauses",
      [](auto host, Params p) {
        return std::move(host)
            .when_matched(kf::source<&Change::stamp> == p.b || kf::source<&Change::op> == 'D')
            .erase()
            .when_matched(kf::source<&Change::op> != 'X')
            .do_nothing()
            .when_matched()
            .erase();
      },
      [](Params p) {
        return by_id({C::matched([p](const Item&, const Change& s) { return s.stamp == p.b || s.op == 'D'; },
                                 Do::erase),
                      C::matched([](const Item&, const Change& s) { return s.op != 'X'; }, Do::nothing),
                      C::matched({}, Do::erase)});
      }));
}

void add_syncs(std::vector<Shape>& shapes) {
  shapes.push_back(keyfold_test::shape<ItemSchema>(
      "full copy, the last of duplicates",
      [](auto host, Params p) {
        return std::move(host)
            .duplicates(kf::keep_last)
            .when_matched([p](const Item& t, const Change& s) { return t.level != s.level || p.b == 0; })
            .update_all()
            .when_not_matched()
            .insert_all()
            .when_not_matched_by_source()
            .erase();
      },
      [](Params p) {
        return choosing(
            by_id({C::matched([p](const Item& t, const Change& s) { return t.level != s.level || p.b == 0; },
                              Do::write, update_all),
                   C::missing({}, Do::write, insert_all), C::left({}, Do::erase)}),
            [](const Change&, const Change&) { return true; });
      }));
  shapes.push_back(keyfold_test::shape<ItemSchema>(
      "touch what is left",
      [](auto host, Params p) {
        return std::move(host)
            .when_matched(kf::source<&Change::stamp> >= p.b)
            .do_nothing()
            .when_matched()
            .update([p](Item t, const Change& s) {
              t.cache = p.a;  // ignored: changes nothing on its own
              t.group = s.group;
              return t;
            })
            .when_not_matched_by_source(kf::target<&Item::group> == p.b)
            .update(kf::target<&Item::level> = kf::target<&Item::level> + 1,
                    kf::target<&Item::stamp> = kf::target<&Item::stamp> + 1)
            .when_not_matched_by_source([p](const Item& t) { return t.id > p.a; })
            .erase();
      },
      [](Params p) {
        return by_id({C::matched([p](const Item&, const Change& s) { return s.stamp && *s.stamp >= p.b; },
                                 Do::nothing),
                      C::matched({}, Do::write,
                                 [p](Item t, const Change& s) {
                                   t.cache = p.a;
                                   t.group = s.group;
                                   return t;
                                 }),
                      C::left([p](const Item& t) { return t.group == p.b; }, Do::write,
                              [](Item t) {
                                t.level = level_of(t.level + 1);
                                if (t.stamp) ++*t.stamp;
                                return t;
                              }),
                      C::left([p](const Item& t) { return t.id > p.a; }, Do::erase)});
      }));
}

void add_key_changes(std::vector<Shape>& shapes) {
  shapes.push_back(keyfold_test::shape<ItemSchema>(
      "new keys for matched rows",
      [](auto host, Params p) {
        return std::move(host)
            .when_matched(kf::source<&Change::op> == 'D')
            .erase()
            .when_matched()
            .update(kf::target<&Item::id> = kf::source<&Change::next_id>,
                    kf::target<&Item::code> = kf::source<&Change::code>)
            .when_not_matched(kf::source<&Change::id> > p.a)
            .insert(kf::target<&Item::id> = kf::source<&Change::next_id>, kf::target<&Item::group> = p.b);
      },
      [](Params p) {
        return by_id({C::matched([](const Item&, const Change& s) { return s.op == 'D'; }, Do::erase),
                      C::matched({}, Do::write,
                                 [](Item t, const Change& s) {
                                   t.id = s.next_id;
                                   t.code = s.code;
                                   return t;
                                 }),
                      C::missing([p](const Change& s) { return s.id > p.a; }, Do::write,
                                 [p](const Change& s) {
                                   Item made;
                                   made.id = s.next_id;
                                   made.group = p.b;
                                   return made;
                                 })});
      }));
  shapes.push_back(keyfold_test::shape<ItemSchema>(
      "mirror the keys of all rows",
      [](auto host, Params p) {
        return std::move(host)
            .when_matched()
            .do_nothing()
            .when_not_matched(kf::source<&Change::op> == 'U')
            .insert_all()
            .when_not_matched_by_source(kf::target<&Item::id> <= p.a)
            .update(kf::target<&Item::id> = p.a - kf::target<&Item::id>,
                    kf::target<&Item::code> = p.a + p.b - kf::target<&Item::code>,
                    kf::target<&Item::stamp> = kf::target<&Item::group>,
                    kf::target<&Item::group> = kf::target<&Item::stamp>);
      },
      [](Params p) {
        return by_id({C::matched({}, Do::nothing),
                      C::missing([](const Change& s) { return s.op == 'U'; }, Do::write, insert_all),
                      C::left([p](const Item& t) { return t.id <= p.a; }, Do::write,
                              [p](Item t) {
                                t.id = p.a - t.id;
                                if (t.code) t.code = p.a + p.b - *t.code;
                                std::swap(t.stamp, t.group);
                                return t;
                              })});
      }));
}

void add_on_conditions(std::vector<Shape>& shapes) {
  shapes.push_back(keyfold_test::shape<ItemSchema>(
      "match within a group",
      [](auto host, Params p) {
        return std::move(host)
            .template on<&Change::id>()
            .on_condition(kf::target<&Item::group> == p.b)
            .when_matched()
            .update(kf::target<&Item::level> = kf::source<&Change::level>)
            .when_not_matched(kf::source<&Change::op> != 'D')
            .insert_all()
            .when_not_matched_by_source(kf::is_null(kf::target<&Item::note>))
            .update(kf::target<&Item::note> = "left");
      },
      [](Params p) {
        Rule rule = by_id({C::matched({}, Do::write,
                                      [](Item t, const Change& s) {
                                        t.level = level_of(s.level);
                                        return t;
                                      }),
                           C::missing([](const Change& s) { return s.op != 'D'; }, Do::write, insert_all),
                           C::left([](const Item& t) { return !t.note; }, Do::write,
                                   [](Item t) {
                                     t.note = "left";
                                     return t;
                                   })});
        rule.matches = [p](const Item& t, const Change& s) { return t.id == s.id && t.group == p.b; };
        return rule;
      }));
  shapes.push_back(keyfold_test::shape<ItemSchema>(
      "match on both sides' stamps, then erase",
      [](auto host, Params p) {
        return std::move(host)
            .on_condition(kf::coalesce(kf::target<&Item::stamp>, 0) <
                          kf::coalesce(kf::source<&Change::stamp>, p.b))
            .duplicates(kf::keep_first)
            .when_matched(kf::source<&Change::level> * 2 > kf::target<&Item::level>)
            .erase()
            .when_not_matched_by_source(kf::target<&Item::level> > 30)
            .erase();
      },
      [](Params p) {
        Rule rule = by_id(
            {C::matched([](const Item& t, const Change& s) { return s.level * 2 > t.level; }, Do::erase),
             C::left([](const Item& t) { return t.level > 30; }, Do::erase)});
        rule.matches = [p](const Item& t, const Change& s) {
          return t.id == s.id && t.stamp.value_or(0) < s.stamp.value_or(p.b);
        };
        return choosing(rule, [](const Change&, const Change&) { return false; });
      }));
}

Rule by_group(std::vector<C::Clause> clauses) {
  Rule rule;
  rule.matches = [](const Item& t, const Change& s) { return t.group && s.group && *t.group == *s.group; };
  rule.same_key = [](const Change& a, const Change& b) { return a.group && a.group == b.group; };
  rule.clauses = std::move(clauses);
  return rule;
}

void add_index_matches(std::vector<Shape>& shapes) {
  shapes.push_back(keyfold_test::shape<ItemSchema>(
      "through a hashed index",
      [](auto host, Params p) {
        return std::move(host)
            .template on<&Change::group>(kf::by<&Item::group>)
            .when_matched(kf::source<&Change::op> == 'D' && kf::target<&Item::id> != p.a)
            .update(kf::target<&Item::amount> = kf::target<&Item::amount> + kf::source<&Change::amount>)
            .when_not_matched()
            .insert([](const Change& s) {
              Item made;
              made.id = s.next_id;
              made.group = s.group;
              return made;
            })
            .when_not_matched_by_source(kf::target<&Item::id> == p.a)
            .update(kf::target<&Item::group> = std::optional<int>());
      },
      [](Params p) {
        return by_group(
            {C::matched([p](const Item& t, const Change& s) { return s.op == 'D' && t.id != p.a; }, Do::write,
                        [](Item t, const Change& s) {
                          t.amount += s.amount;
                          return t;
                        }),
             C::missing({}, Do::write,
                        [](const Change& s) {
                          Item made;
                          made.id = s.next_id;
                          made.group = s.group;
                          return made;
                        }),
             C::left([p](const Item& t) { return t.id == p.a; }, Do::write,
                     [](Item t) {
                       t.group.reset();
                       return t;
                     })});
      }));
  shapes.push_back(keyfold_test::shape<ItemSchema>(
      "through a hashed index, the first of each group",
      [](auto host, Params p) {
        return std::move(host)
            .duplicates(kf::keep_first)
            .template on<&Change::group>(kf::by<&Item::group>)
            .on_condition([p](const Item& t, const Change&) { return t.id >= p.b; })
            .when_matched()
            .update([](Item t, const Change& s) {
              t.stamp = s.stamp;
              return t;
            });
      },
      [](Params p) {
        Rule rule = by_group({C::matched({}, Do::write, [](Item t, const Change& s) {
          t.stamp = s.stamp;
          return t;
        })});
        rule.matches = [p](const Item& t, const Change& s) {
          return t.group && t.group == s.group && t.id >= p.b;
        };
        return choosing(rule, [](const Change&, const Change&) { return false; });
      }));
  shapes.push_back(keyfold_test::shape<ItemSchema>(
      "through the unique index",
      [](auto host, Params) {
        return std::move(host)
            .template on<&Change::code>(kf::by<&Item::code>)
            .when_matched()
            .update_all()
            .when_not_matched(!kf::is_null(kf::source<&Change::code>))
            .insert_all();
      },
      [](Params) {
        Rule rule =
            by_id({C::matched({}, Do::write, update_all),
                   C::missing([](const Change& s) { return s.code.has_value(); }, Do::write, insert_all)});
        rule.matches = [](const Item& t, const Change& s) { return t.code && t.code == s.code; };
        return rule;
      }));
  shapes.push_back(keyfold_test::shape<ItemSchema>(
      "through an ordered index with NaN",
      [](auto host, Params) {
        return std::move(host).template on<&Change::amount>(kf::by<&Item::amount>).when_matched().erase();
      },
      [](Params) {
        Rule rule = by_id({C::matched({}, Do::erase)});
        rule.matches = [](const Item& t, const Change& s) { return same_number(t.amount, s.amount); };
        return rule;
      }));
  for (std::size_t i = shapes.size() - 4; i < shapes.size(); ++i) shapes[i].any_order = true;
}

void add_policies(std::vector<Shape>& shapes) {
  shapes.push_back(keyfold_test::shape<ItemSchema>(
      "fold",
      [](auto host, Params p) {
        return std::move(host)
            .duplicates(kf::fold([](Change folded, const Change& next) {
              folded.level = (folded.level + next.level) % 50;
              folded.note = next.note;
              return folded;
            }))
            .when_matched(
                kf::source<&Change::level> > p.b &&
                !(kf::target<&Item::stamp> < p.b && kf::source<&Change::group> == kf::target<&Item::group>))
            .update(kf::target<&Item::level> = kf::source<&Change::level> - p.a,
                    kf::target<&Item::note> = kf::source<&Change::note>)
            .when_not_matched()
            .insert_all();
      },
      [](Params p) {
        Rule rule = by_id({C::matched(
                               [p](const Item& t, const Change& s) {
                                 // An AND with a false side is false, even if the other side is unknown.
                                 const bool late = t.stamp && *t.stamp >= p.b;
                                 const bool moved = s.group && t.group && *s.group != *t.group;
                                 return s.level > p.b && (late || moved);
                               },
                               Do::write,
                               [p](Item t, const Change& s) {
                                 t.level = level_of(s.level - p.a);
                                 t.note = s.note;
                                 return t;
                               }),
                           C::missing({}, Do::write, insert_all)});
        rule.policy = Policy::fold;
        rule.fold = [](Change a, const Change& b) {
          a.level = (a.level + b.level) % 50;
          a.note = b.note;
          return a;
        };
        return rule;
      }));
  shapes.push_back(keyfold_test::shape<ItemSchema>(
      "reject duplicates that no clause would touch",
      [](auto host, Params p) {
        return std::move(host)
            .duplicates(kf::reject)
            .when_matched(kf::source<&Change::id> == p.a)
            .update(kf::target<&Item::note> = "it's", kf::target<&Item::level> = kf::source<&Change::level>);
      },
      [](Params p) {
        Rule rule = by_id({C::matched([p](const Item&, const Change& s) { return s.id == p.a; }, Do::write,
                                      [](Item t, const Change& s) {
                                        t.note = "it's";
                                        t.level = level_of(s.level);
                                        return t;
                                      })});
        rule.policy = Policy::reject;
        return rule;
      }));
}

void add_failures(std::vector<Shape>& shapes) {
  shapes.push_back(keyfold_test::shape<ItemSchema>(
      "raise",
      [](auto host, Params p) {
        return std::move(host)
            .when_matched(kf::source<&Change::op> == 'X')
            .raise("matched")
            .when_matched(kf::source<&Change::stamp> != kf::target<&Item::stamp>)
            .update_all()
            .when_not_matched(kf::source<&Change::op> == 'X')
            .raise("not matched")
            .when_not_matched()
            .insert_all()
            .when_not_matched_by_source(kf::target<&Item::id> == p.a && kf::target<&Item::level> > 20)
            .raise("left");
      },
      [](Params p) {
        return by_id({C::matched([](const Item&, const Change& s) { return s.op == 'X'; }, Do::raise),
                      C::matched([](const Item& t,
                                    const Change& s) { return s.stamp && t.stamp && *s.stamp != *t.stamp; },
                                 Do::write, update_all),
                      C::missing([](const Change& s) { return s.op == 'X'; }, Do::raise),
                      C::missing({}, Do::write, insert_all),
                      C::left([p](const Item& t) { return t.id == p.a && t.level > 20; }, Do::raise)});
      }));
  shapes.push_back(keyfold_test::shape<ItemSchema>(
      "a condition that throws",
      [](auto host, Params p) {
        return std::move(host)
            .when_matched(kf::named("throws",
                                    [p](const Item& t, const Change& s) {
                                      if (s.op == 'X' && s.stamp == p.b) throw UsersOwn();
                                      return t.cache != s.next_id;
                                    }))
            .update(
                kf::target<&Item::cache> = kf::source<&Change::next_id>,
                kf::target<&Item::amount> =
                    [p](const Item& t, const Change& s) {
                      if (s.op == 'D' && s.stamp == p.b) throw UsersOwn();
                      return -t.amount;
                    })
            .when_not_matched()
            .insert_all();
      },
      [](Params p) {
        return by_id({C::matched(
                          [p](const Item& t, const Change& s) {
                            if (s.op == 'X' && s.stamp == p.b) throw Failure{Fault::users_own};
                            return t.cache != s.next_id;
                          },
                          Do::write,
                          [p](Item t, const Change& s) {
                            if (s.op == 'D' && s.stamp == p.b) throw Failure{Fault::users_own};
                            t.cache = s.next_id;
                            t.amount = -t.amount;
                            return t;
                          }),
                      C::missing({}, Do::write, insert_all)});
      }));
}

// Source rows of the target's own type: whole rows, the ignored column with them.
void add_same_type(std::vector<Shape>& shapes) {
  using Own = keyfold_test::Clauses<Item, Item>;
  const auto whole_row = [](const Change& s) {
    Change fitting = s;
    fitting.level %= 100;
    return *ItemSchema::row(fitting);
  };
  shapes.push_back(keyfold_test::shape_of<ItemSchema, Item>(
      "whole rows where they differ", whole_row,
      [](auto host, Params p) {
        return std::move(host)
            .when_matched(kf::target<&Item::stamp> < p.b ||
                          kf::source<&Item::group> == kf::target<&Item::group>)
            .update_all()
            .when_not_matched(kf::source<&Item::id> != p.a)
            .insert_all()
            .when_not_matched_by_source(!(kf::target<&Item::group> == p.b))
            .erase();
      },
      [](Params p) {
        keyfold_test::model::Rule<Item, Item> rule{ItemSchema::same_key, ItemSchema::same_key};
        rule.clauses = {Own::matched(
                            [p](const Item& t, const Item& s) {
                              return (t.stamp && *t.stamp < p.b) ||
                                     (s.group && t.group && *s.group == *t.group);
                            },
                            Do::write, [](const Item&, const Item& s) { return s; }),
                        Own::missing([p](const Item& s) { return s.id != p.a; }, Do::write,
                                     [](const Item& s) { return s; }),
                        Own::left([p](const Item& t) { return t.group && *t.group != p.b; }, Do::erase)};
        return rule;
      }));
}

// The table is its own source.
void add_self_merge(std::vector<Shape>& shapes) {
  using Own = keyfold_test::Clauses<Item, Item>;
  const auto make = [](auto host, const Params& p) {
    return std::move(host)
        .when_matched(kf::source<&Item::id> < p.b)
        .erase()
        .when_matched(kf::source<&Item::id> >= p.a)
        .update(kf::target<&Item::id> = p.a + 6 - kf::source<&Item::id>, kf::target<&Item::stamp> = p.b);
  };
  const auto rule = [](const Params& p) {
    keyfold_test::model::Rule<Item, Item> out{ItemSchema::same_key, ItemSchema::same_key};
    out.clauses = {Own::matched([p](const Item&, const Item& s) { return s.id < p.b; }, Do::erase),
                   Own::matched([p](const Item&, const Item& s) { return s.id >= p.a; }, Do::write,
                                [p](Item t, const Item& s) {
                                  t.id = p.a + 6 - s.id;
                                  t.stamp = p.b;
                                  return t;
                                })};
    return out;
  };
  using keyfold_test::Step;
  using Table = ItemSchema::Table;
  shapes.push_back({"the table itself",
                    [rule](const std::vector<Item>& rows, const auto&, const Params& p) {
                      return keyfold_test::model::merge<ItemSchema, Item>(rows, rows, rule(p));
                    },
                    [make](Table& table, const auto&, const Step& step) {
                      auto merge = make(table.merge(table), step.params);
                      return step.metadata ? std::move(merge).metadata(*step.metadata).execute()
                                           : merge.execute();
                    },
                    [make](Table& table, const auto&, const Step& step) {
                      return make(table.merge(table), step.params).preview();
                    }});
}

std::vector<Shape> all_shapes() {
  std::vector<Shape> shapes;
  add_upserts(shapes);
  add_deletes(shapes);
  add_syncs(shapes);
  add_key_changes(shapes);
  add_on_conditions(shapes);
  add_index_matches(shapes);
  add_policies(shapes);
  add_failures(shapes);
  add_same_type(shapes);
  add_self_merge(shapes);
  return shapes;
}

}  // namespace

TEST_CASE("random programs do what the model does", "[model]") {
  const std::vector<Shape> shapes = all_shapes();
  keyfold_test::Tally tally;
  keyfold_test::Runner<ItemSchema> runner(shapes, tally);
  keyfold_test::check_property("table and model agree", 4000,
                               [&] { runner.run(*keyfold_test::programs(shapes.size())); });
  if (keyfold_test::scaled(100) < 100) return;
  for (int fault = 0; fault < keyfold_test::model::fault_count; ++fault) {
    INFO("fault " << fault);
    CHECK((tally.faults[static_cast<Fault>(fault)] > 20 || static_cast<Fault>(fault) == Fault::invalid_key));
  }
  for (const Shape& shape : shapes) {
    INFO(shape.name);
    CHECK(tally.effective[shape.name] > 50);
  }
  CHECK(tally.rekeyed > 200);
}
