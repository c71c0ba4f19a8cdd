// Runs the examples of docs/merge-semantics.md; semantics.sh makes the program.
#pragma once

#include <keyfold/keyfold.hpp>
#include <keyfold/print.hpp>

#include <cstdio>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

struct Row {
  int id = 0;
  std::optional<int> v;
};
BOOST_DESCRIBE_STRUCT(Row, (), (id, v))

using T = kf::Table<Row, kf::Key<&Row::id>>;
using U = kf::Table<Row, kf::Key<&Row::id>, kf::UniqueBy<&Row::v>>;
using H = kf::Table<Row, kf::Key<&Row::id>, kf::HashedBy<&Row::v>>;

constexpr auto s_id = kf::source<&Row::id>;
constexpr auto s_v = kf::source<&Row::v>;
constexpr auto t_id = kf::target<&Row::id>;
constexpr auto t_v = kf::target<&Row::v>;

// "(1,10) (2,-)"
inline std::vector<Row> rows_of(const std::string& text) {
  std::vector<Row> rows;
  std::istringstream in(text);
  for (std::string word; in >> word;) {
    const auto comma = word.find(',');
    const std::string value = word.substr(comma + 1, word.size() - comma - 2);
    rows.push_back({std::stoi(word.substr(1)), value == "-" ? std::nullopt : std::optional(std::stoi(value))});
  }
  return rows;
}

inline std::string text_of(const auto& rows) {
  std::string text;
  for (const Row& row : rows) {
    text += " (" + std::to_string(row.id) + "," + (row.v ? std::to_string(*row.v) : "-") + ")";
  }
  return text;
}

inline std::string position(kf::Position position) {
  return position == kf::no_position ? "none" : std::to_string(position);
}

inline std::string positions(const auto& error) {
  return ", first_position " + position(error.first_position) + ", second_position " +
         position(error.second_position);
}

// The table after the statement and the counts that are not zero, or the error.
template <class Table, class Statement>
std::string outcome(const std::string& name, Table& table, const std::vector<Row>& source, Statement statement) {
  try {
    const auto result = statement(table, source);
    std::ostringstream counts;
    counts << result.metrics();
    const auto after_source_rows = counts.str().find(' ');
    std::string text = name + ":" + text_of(table);
    if (after_source_rows != std::string::npos) text += "  " + counts.str().substr(after_source_rows);
    return text + ", version " + std::to_string(result.version());
  } catch (const kf::DuplicateSourceKey& error) {
    return "throws DuplicateSourceKey" + positions(error);
  } catch (const kf::DuplicateKey& error) {
    return "throws DuplicateKey" + positions(error);
  } catch (const kf::UniqueViolation& error) {
    return "throws UniqueViolation" + positions(error);
  } catch (const kf::ClauseRaised& error) {
    return "throws ClauseRaised, position " + position(error.position);
  } catch (const kf::ValueOutOfRange& error) {
    return "throws ValueOutOfRange, column " + error.column;
  } catch (const std::domain_error&) {
    return "throws domain_error";
  }
}

inline int examples = 0;
inline int failures = 0;

inline void expect(bool holds, int line, const std::string& wanted, const std::string& seen) {
  if (holds) return;
  ++failures;
  std::cout << "docs/merge-semantics.md:" << line << ": expected " << wanted << "\n  seen     " << seen << '\n';
}

template <class Table, class Statement>
void example(int line, const std::string& before, const std::string& source, Statement statement,
             const std::string& expected) {
  ++examples;
  Table table;
  if (const auto rows = rows_of(before); !rows.empty()) table.append(rows);
  const kf::Version version = table.version();
  const std::string name = expected.substr(0, expected.find(':'));
  const std::string seen = outcome(name, table, rows_of(source), statement);
  // The end may be left out: the version, or the members of an error.
  expect(seen == expected || seen.starts_with(expected + ", "), line, expected, seen);
  if (seen.starts_with("throws")) {
    expect(text_of(table) == text_of(rows_of(before)) && table.version() == version, line, "no change", text_of(table));
  }
}

inline int finish(int count) {
  expect(examples == count && count > 0, 0, std::to_string(count) + " examples", std::to_string(examples));
  return failures == 0 ? 0 : 1;
}
