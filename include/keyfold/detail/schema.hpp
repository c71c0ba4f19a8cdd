// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/archive.hpp>
#include <keyfold/detail/type_skipper.hpp>
#include <keyfold/detail/type_text.hpp>
#include <keyfold/schema.hpp>
#include <keyfold/snapshot_error.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

/// What rows are made of, as a file says it, and rows of files that say something else than the program.
namespace keyfold::detail {

struct StoredColumn {
  std::string name;
  std::string type;
  bool operator==(const StoredColumn&) const = default;
};

struct StoredSchema {
  bool is_object = false;           // rows write themselves with serialize()
  std::uint32_t class_version = 0;  // of the row, as Boost.Serialization knows it
  std::vector<StoredColumn> columns{};
  bool operator==(const StoredSchema&) const = default;
};

template <class Row, auto... Members>
std::vector<StoredColumn> stored_columns(MemberList<Members...>) {
  return {{std::string(member_name<Members>), detail::type_text_in<member_t<Members>, Row>()}...};
}

/// Each failure is a sentence.
template <class Row>
consteval bool require_row() {
  static_assert(codec_kind_v<Row> == CodecKind::object || codec_kind_v<Row> == CodecKind::record,
                "keyfold: a row to be saved needs a column list (BOOST_DESCRIBE_STRUCT or columns_of) or a "
                "serialize()");
  static_assert(std::is_default_constructible_v<Row>,
                "keyfold: a row to be loaded must be default constructible");
  return true;
}

template <class Row>
StoredSchema schema_of() {
  static_assert(require_row<Row>());
  constexpr CodecKind kind = codec_kind_v<Row>;
  StoredSchema schema;
  schema.is_object = kind == CodecKind::object;
  if constexpr (kind == CodecKind::object) {
    schema.class_version = static_cast<std::uint32_t>(boost::serialization::version<Row>::value);
  } else if constexpr (kind == CodecKind::record) {
    schema.columns = detail::stored_columns<Row>(columns_list<Row>{});
  }
  return schema;
}

inline void put_schema(ByteBuffer& out, const StoredSchema& schema) {
  detail::put_u8(out, schema.is_object ? 1 : 0);
  detail::put_u32(out, schema.class_version);
  detail::put_count(out, schema.columns.size());
  for (const StoredColumn& column : schema.columns) {
    detail::put_text(out, column.name);
    detail::put_text(out, column.type);
  }
}

/// Throws DecodeError.
inline StoredSchema get_schema(ByteReader& in) {
  StoredSchema schema;
  schema.is_object = detail::get_flag(in);
  schema.class_version = detail::get_u32(in);
  const std::size_t count = detail::get_u32(in);
  if (count > in.left() / 8) in.fail("more columns than the bytes can hold");
  std::unordered_set<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    std::string name(detail::get_text(in));
    if (!names.insert(name).second) in.fail("the column '" + name + "' is there twice");
    schema.columns.push_back({std::move(name), std::string(detail::get_text(in))});
  }
  return schema;
}

inline auto has_column(const StoredSchema& schema) {
  return [&schema](std::string_view name) {
    return std::ranges::find(schema.columns, name, &StoredColumn::name) != schema.columns.end();
  };
}

template <class Row>
consteval bool renames_to_columns() {
  if constexpr (HasColumns<Row>) {
    for (const RenamedColumn& column : schema_changes<Row>::renamed) {
      if (column_index<Row>(column.now) >= column_count<Row>) return false;
    }
  }
  return true;
}

/// `has(name)` tells whether the file has a column of that name: one that has the new name was written since.
template <class Row, class Has>
std::string_view name_now(std::string_view stored, [[maybe_unused]] Has has) {
  if constexpr (requires { schema_changes<Row>::renamed; }) {
    static_assert(renames_to_columns<Row>(),
                  "keyfold: schema_changes<>::renamed gives a new name that is no column of the row type");
    for (const RenamedColumn& column : schema_changes<Row>::renamed) {
      if (column.stored == stored && !has(column.now)) return column.now;
    }
  }
  return stored;
}

template <class Row>
bool is_dropped(std::string_view stored) {
  if constexpr (requires { schema_changes<Row>::dropped; }) {
    for (const std::string_view name : schema_changes<Row>::dropped) {
      if (name == stored) return true;
    }
  }
  return false;
}

/// Reads rows that were written under some schema into the row type of the program.
template <class Row>
class RowDecoder {
 public:
  /// Throws SchemaMismatch, UnsupportedFormat, DecodeError if a type that is to be skipped is none.
  explicit RowDecoder(const StoredSchema& stored) {
    const StoredSchema present = detail::schema_of<Row>();
    if (stored.is_object != present.is_object) refuse_row(stored);
    if (stored.class_version > present.class_version)
      throw UnsupportedFormat("the class of the rows", stored.class_version, present.class_version);
    if (stored.columns == present.columns) return;
    evolved_ = true;
    names_.reserve(stored.columns.size());
    for (std::size_t i = 0; i < stored.columns.size(); ++i) add_step(stored.columns[i], i, stored, present);
    for (const Step& step : steps_) {
      if (step.get == nullptr) check_skipped(stored.columns[step.column], present);
    }
    prepare_to_skip(stored);
  }

  /// Throws what Decoder throws.
  void read(Decoder& in, Row& row) const {
    if (!evolved_) return in.get(row);
    if constexpr (codec_kind_v<Row> == CodecKind::record) {
      const NestingScope scope = in.descend();
      for (const Step& step : steps_) {
        if (step.get != nullptr) {
          step.get(in, row);
        } else {
          skipper_->skip_part(step.column, in.in());
        }
      }
    }
  }

  /// The fewest bytes that a row can take in the file.
  std::size_t least_size() const noexcept { return evolved_ ? 0 : detail::least_size<Row>(); }

 private:
  struct Step {
    void (*get)(Decoder&, Row&);  // null: the column is skipped
    std::size_t column;           // its number in the file
  };

  [[noreturn]] static void refuse_row(const StoredSchema& stored) {
    const char* const object = "an object that writes itself";
    const char* const record = "columns";
    throw SchemaMismatch("<row>", stored.is_object ? object : record, stored.is_object ? record : object,
                         "load it into the row type that wrote it, and copy its rows");
  }

  void add_step(const StoredColumn& column, std::size_t number, const StoredSchema& stored,
                const StoredSchema& present) {
    const std::string_view name = detail::name_now<Row>(column.name, has_column(stored));
    for (std::size_t i = 0; i < present.columns.size(); ++i) {
      if (present.columns[i].name != name) continue;
      if (present.columns[i].type != column.type) {
        throw SchemaMismatch(column.name, column.type, present.columns[i].type,
                             "give the column its old type, or give the new one another name and name the "
                             "old one in schema_changes<>::dropped");
      }
      for (const std::string_view earlier : names_) {
        if (earlier == name)
          throw SchemaMismatch(column.name, column.type, "column '" + std::string(name) + "' for two",
                               "correct schema_changes<>::renamed");
      }
      names_.push_back(name);
      steps_.push_back({getter(i), number});
      return;
    }
    steps_.push_back({nullptr, number});
  }

  // A column that has gone beside one that has come may have been renamed, and nobody said so.
  void check_skipped(const StoredColumn& column, const StoredSchema& present) const {
    if (detail::is_dropped<Row>(column.name)) return;
    for (const StoredColumn& gained : present.columns) {
      if (gained.type != column.type || std::ranges::find(names_, gained.name) != names_.end()) continue;
      throw SchemaMismatch(
          column.name, column.type,
          "no such column, but a column '" + gained.name + "' that the file has not",
          "say in schema_changes<>::renamed that it is that one, or in schema_changes<>::dropped "
          "that it is gone, unless the file is that of another table");
    }
  }

  // The row as one record, since a column may hold rows.
  void prepare_to_skip(const StoredSchema& stored) {
    if (std::ranges::all_of(steps_, [](const Step& step) { return step.get != nullptr; })) return;
    std::string text;
    for (const StoredColumn& column : stored.columns)
      text += (text.empty() ? "" : ",") + column.name + ':' + column.type;
    record_ = std::make_unique<const std::string>("record(" + text + ')');
    skipper_.emplace(*record_);
    if (skipper_->parts() != stored.columns.size())
      throw DecodeError(0, "the name or type of a column is none");
  }

  template <auto Member>
  static void get_column(Decoder& in, Row& row) {
    in.get(row.*Member);
  }
  static auto getter(std::size_t column) -> void (*)(Decoder&, Row&) {
    if constexpr (codec_kind_v<Row> == CodecKind::record) {
      return [&]<auto... Members>(MemberList<Members...>) {
        constexpr void (*getters[])(Decoder&, Row&) = {&RowDecoder::get_column<Members>...};
        return getters[column];
      }(columns_list<Row>{});
    } else {
      return nullptr;
    }
  }

  bool evolved_ = false;
  std::vector<Step> steps_;
  std::vector<std::string_view> names_;  // of the program's columns that the file has
  std::unique_ptr<const std::string> record_;
  std::optional<TypeSkipper> skipper_;
};

}  // namespace keyfold::detail
