// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/change.hpp>
#include <keyfold/column.hpp>
#include <keyfold/detail/arrow_builder.hpp>
#include <keyfold/detail/arrow_column.hpp>
#include <keyfold/detail/arrow_error.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Rows and changes as struct arrays.
namespace keyfold::detail {

template <class Column>
void add_child(ArrowColumn& parent, const char* name, Column&& column) {
  column.name = name;
  parent.children.push_back(std::forward<Column>(column));
}

/// Rows.
template <class Row>
class ArrowRows {
 public:
  static constexpr bool has_columns = HasColumns<Row>;

  void add(const Row& row) { rows_.add(row); }
  [[nodiscard]] ArrowColumn finish(bool large) { return std::move(rows_).finish(large); }

 private:
  ArrowRowBuilder<Row> rows_;
};

template <class Row>
  requires(!HasColumns<Row>)
class ArrowRows<Row> {
 public:
  static constexpr bool has_columns = false;
};

/// Changes: what happened, and the rows before and after, each of which may be absent.
template <class Row>
  requires HasColumns<Row>
class ArrowRows<Change<Row>> {
 public:
  static constexpr bool has_columns = true;

  void add(const Change<Row>& change) {
    kind_.add(to_string(change.kind()));
    add_image("before", before_, change.before());
    add_image("after", after_, change.after());
    ++length_;
  }
  [[nodiscard]] ArrowColumn finish(bool large) {
    ArrowColumn out{.format = "+s", .length = length_, .buffers = {nullptr}};
    add_children(out, large);
    return out;
  }

 protected:
  void add_children(ArrowColumn& out, bool large) {
    add_child(out, "kind", std::move(kind_).finish(large));
    add_child(out, "before", finish_image("before", before_, large));
    add_child(out, "after", finish_image("after", after_, large));
  }

 private:
  using Image = ArrowNullable<ArrowRowBuilder<Row>>;

  static void add_image(const char* name, Image& image, const Row* row) {
    within(name, [&] { image.add_pointer(row); });
  }
  static ArrowColumn finish_image(const char* name, Image& image, bool large) {
    ArrowColumn column;
    within(name, [&] { column = std::move(image).finish(large); });
    return column;
  }
  template <class Action>
  static void within(const char* name, Action action) {
    try {
      action();
    } catch (ColumnFault& fault) {
      prepend_name(fault, name);
      throw;
    }
  }

  ArrowBuilder<std::string_view> kind_;
  Image before_;
  Image after_;
  std::int64_t length_ = 0;
};

/// Changes with the version that made them.
template <class Row>
  requires HasColumns<Row>
class ArrowRows<FeedChange<Row>> : public ArrowRows<Change<Row>> {
 public:
  void add(const FeedChange<Row>& change) {
    version_.add(change.version());
    timestamp_.add(change.timestamp());
    ArrowRows<Change<Row>>::add(change);
    ++length_;
  }
  [[nodiscard]] ArrowColumn finish(bool large) {
    ArrowColumn out{.format = "+s", .length = length_, .buffers = {nullptr}};
    add_child(out, "version", std::move(version_).finish(large));
    add_child(out, "timestamp", std::move(timestamp_).finish(large));
    this->add_children(out, large);
    return out;
  }

 private:
  ArrowBuilder<Version> version_;
  ArrowBuilder<Timestamp> timestamp_;
  std::int64_t length_ = 0;
};

template <class Row, class Range>
ArrowColumn arrow_column(Range& range, bool large) {
  ArrowRows<Row> rows;
  Position position = 0;
  try {
    for (const Row& row : range) {
      rows.add(row);
      ++position;
    }
    position = no_position;
    return rows.finish(large);
  } catch (const ColumnFault& fault) {
    throw ArrowError(fault.column, position, fault.message);
  }
}

/// Both or nothing; either may be null.
inline void export_column(ArrowColumn&& column, ArrowArray* array, ArrowSchema* schema) {
  ArrowOwner<ArrowSchema> made_schema;
  ArrowOwner<ArrowArray> made_array;
  if (schema != nullptr) make_schema(column, made_schema.owned);
  if (array != nullptr) make_array(std::move(column), made_array.owned);
  if (schema != nullptr) made_schema.move_to(schema);
  if (array != nullptr) made_array.move_to(array);
}

}  // namespace keyfold::detail
