// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/utf8.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Text that is laid out on a terminal: escaped, measured in code points, aligned in columns.
namespace keyfold::detail {

/// Whether a terminal would not show the code point but act on it: controls, line ends, and marks that turn
/// the direction of the text around.
constexpr bool acts_on_terminal(char32_t c) noexcept {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x061C || c == 0x200E || c == 0x200F ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

inline void append_hex(std::string& out, std::uint32_t value, unsigned digits) {
  while (digits-- != 0) out += "0123456789abcdef"[value >> (4 * digits) & 0xFU];
}

inline void append_escape(std::string& out, const CodePoint& c) {
  out += '\\';
  switch (c.value) {
    case '\\':
      out += '\\';
      return;
    case '\n':
      out += 'n';
      return;
    case '\r':
      out += 'r';
      return;
    case '\t':
      out += 't';
      return;
    default:
      break;
  }
  const bool is_byte = !c.valid || c.value < 0x80;
  out += is_byte ? 'x' : 'u';
  append_hex(out, c.value, is_byte ? 2 : 4);
}

/// Appends text as C would write it between quotes, so that it stays on its line.
inline void append_escaped(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    if (!c.valid || c.value == '\\' || acts_on_terminal(c.value)) {
      append_escape(out, c);
    } else {
      out += text.substr(0, c.bytes);
    }
    text.remove_prefix(c.bytes);
  }
}

inline std::string escaped(std::string_view text) {
  std::string out;
  append_escaped(out, text);
  return out;
}

/// Requires: well-formed UTF-8.
inline std::size_t width_of(std::string_view text) noexcept {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char byte) { return !is_continuation(byte); }));
}

/// Shortens text of more than `limit` code points to that many, of which the last three are dots.
inline void cut(std::string& text, std::size_t limit) {
  if (text.size() <= limit || width_of(text) <= limit) return;
  const std::size_t dots = std::min<std::size_t>(limit, 3);
  std::size_t end = 0;
  for (std::size_t kept = 0; kept < limit - dots; ++kept)
    end += first_code_point(std::string_view(text).substr(end)).bytes;
  text.replace(end, std::string::npos, dots, '.');
}

/// Cells in columns. Every cell is one line of well-formed UTF-8.
class TextGrid {
 public:
  enum class Align : std::uint8_t { left, right };

  void add_column(std::string_view name, Align align) {
    columns_.push_back({align, width_of(name)});
    names_.emplace_back(name);
  }

  /// Adds a cell, row by row. Requires: there is a column.
  void add(std::string cell) {
    std::size_t& width = columns_[cells_.size() % columns_.size()].width;
    width = std::max(width, width_of(cell));
    cells_.push_back(std::move(cell));
  }

  /// The names, a rule, and the rows; lines end without spaces.
  [[nodiscard]] std::string text() const {
    std::string out;
    if (columns_.empty()) return out;
    append_line(out, names_.data());
    append_rule(out);
    for (std::size_t cell = 0; cell < cells_.size(); cell += columns_.size()) append_line(out, &cells_[cell]);
    return out;
  }

 private:
  struct Column {
    Align align;
    std::size_t width;
  };

  void append_line(std::string& out, const std::string* cells) const {
    for (const Column& column : columns_) {
      if (&column != columns_.data()) out += " | ";
      const std::size_t padding = column.width - width_of(*cells);
      if (column.align == Align::right) out.append(padding, ' ');
      out += *cells++;
      if (column.align == Align::left) out.append(padding, ' ');
    }
    while (!out.empty() && out.back() == ' ') out.pop_back();
    out += '\n';
  }

  void append_rule(std::string& out) const {
    for (const Column& column : columns_) {
      if (&column != columns_.data()) out += "-+-";
      out.append(column.width, '-');
    }
    out += '\n';
  }

  std::vector<Column> columns_;
  std::vector<std::string> names_;
  std::vector<std::string> cells_;
};

}  // namespace keyfold::detail
