// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/change.hpp>
#include <keyfold/debezium.hpp>
#include <keyfold/detail/json_rows.hpp>
#include <keyfold/detail/member.hpp>
#include <keyfold/detail/value.hpp>
#include <keyfold/key.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

/// Debezium's envelope as JSON.
namespace keyfold::detail {

template <auto Member, class Row>
inline constexpr bool is_listed =
    is_data_member<Member> && column_index<Row>(member_name<Member>) < column_count<Row>;

/// What stands for a table in the events: the row, and the columns of its key.
template <class RowType, auto... Key>
struct EventRows {
  using Row = RowType;
  using KeyParts = Parts<Key...>;

  /// Columns that the row before a change need not have. None where the key is not known.
  static ColumnSet<Row> lenient_before() {
    ColumnSet<Row> out;
    if constexpr (sizeof...(Key) > 0 && (is_listed<Key, Row> && ...)) {
      out.set();
      (out.reset(column_index<Row>(member_name<Key>)), ...);
    }
    return out;
  }
};

template <class Of, auto... Key>
struct event_rows {
  static_assert((is_listed<Key, Of> && ...),
                "keyfold: json_events<Row, &Row::id>() names columns of the row, those of its key");
  using type = EventRows<Of, Key...>;
};
template <class Row, auto... Part, class... Indexes>
struct event_rows<Table<Row, Key<Part...>, Indexes...>> {
  using type = EventRows<Row, Part...>;
};
template <class Row, auto... Part, class... Indexes>
struct event_rows<Table<Row, OrderedKey<Part...>, Indexes...>> {
  using type = EventRows<Row, Part...>;
};

template <class Of, auto... Key>
using event_rows_t = typename event_rows<Of, Key...>::type;

template <class Of>
inline constexpr bool is_table = false;
template <class Row, class Key, class... Indexes>
inline constexpr bool is_table<Table<Row, Key, Indexes...>> = true;

template <class Of>
struct written_rows : event_rows<Of> {
  static_assert(is_table<Of>,
                "keyfold: debezium::write_json<Table>() names the type of the table whose changes it writes");
};
template <class Of>
using written_rows_t = typename written_rows<Of>::type;
template <class Of>
using written_row_t = typename written_rows_t<Of>::Row;

template <class Rows>
class JsonEventReader {
  using Row = typename Rows::Row;

 public:
  using value_type = debezium::Event<Row>;

  JsonEventReader(JsonLines lines, const JsonRules& rules, std::string sequence)
      : lines_(std::move(lines)), rules_(rules), sequence_(std::move(sequence)) {}

  /// Reads the next envelope; a blank line is a tombstone. Returns: false at the end. Throws: JsonError.
  bool read(value_type& event) {
    if (!lines_.next()) return false;
    event = value_type();
    if (!lines_.blank()) lines_.parse([&](const JsonValue& message) { read_message(message, event); });
    return true;
  }

 private:
  // A converter with schemas puts the envelope beside its schema.
  void read_message(const JsonValue& message, value_type& event) const {
    const auto payload = message.member("payload");
    const JsonValue envelope = payload && !message.member("op") ? *payload : message;
    if (!envelope.is_null()) read_envelope(envelope, event);
  }

  void read_envelope(const JsonValue& envelope, value_type& event) const {
    const auto op = envelope.member("op");
    if (!op) {
      throw ColumnFault{envelope.offset(), "op",
                        "is missing, so that this is no change event; read plain rows, as an unwrapping "
                        "transform makes them, with json_rows()"};
    }
    if (op->kind() != JsonKind::text || op->text().size() != 1)
      throw ColumnFault{op->offset(), "op", found_text(*op) + " where one of c, u, d and r is needed"};
    event.op = op->text().front();
    read_image(envelope, "before", event.before, before_lenient_);
    read_image(envelope, "after", event.after, {});
    if (!sequence_.empty()) event.sequence = read_sequence(envelope);
  }

  void read_image(const JsonValue& envelope, const char* name, std::optional<Row>& image,
                  const ColumnSet<Row>& lenient) const {
    const auto found = envelope.member(name);
    if (!found || found->is_null()) return;
    try {
      JsonObjectReader<Row>(rules_).read(*found, image.emplace(), lenient);
    } catch (ColumnFault& fault) {
      prepend_name(fault, name);
      throw;
    }
  }

  [[nodiscard]] std::uint64_t read_sequence(const JsonValue& envelope) const {
    JsonValue at = envelope;
    for (std::size_t begin = 0; begin <= sequence_.size();) {
      const std::size_t end = std::min(sequence_.find('.', begin), sequence_.size());
      const auto member = at.member(std::string_view(sequence_).substr(begin, end - begin));
      if (!member) refuse_sequence(at, "is missing");
      at = *member;
      begin = end + 1;
    }
    const auto number = detail::parse_number<std::uint64_t>(at.text());
    if (!number) refuse_sequence(at, found_text(at) + " where a whole number that is not negative is needed");
    return *number;
  }

  [[noreturn]] void refuse_sequence(const JsonValue& at, const std::string& what) const {
    throw ColumnFault{
        at.offset(), sequence_,
        what + "; name another member in EventOptions::sequence, or none and use from_offset()"};
  }

  JsonLines lines_;
  JsonRules rules_;
  std::string sequence_;
  ColumnSet<Row> before_lenient_ = Rows::lenient_before();
};

/// Where changes come from.
struct EventSource {
  Version version;
  Timestamp time;
};

template <class Row>
void append_image(std::string& out, const char* name, const Row* row, JsonTimes times) {
  out += '"';
  out += name;
  out += "\":";
  if (row == nullptr) {
    out += "null";
    return;
  }
  try {
    append_object(out, *row, times);
  } catch (ColumnFault& fault) {
    prepend_name(fault, name);
    throw;
  }
}

template <class Row>
void append_event(std::string& out, char op, const Row* before, const Row* after, const EventSource& source,
                  JsonTimes times) {
  using namespace std::chrono;
  const std::string milliseconds =
      number_text(floor<std::chrono::milliseconds>(source.time).time_since_epoch().count());
  out += '{';
  append_image(out, "before", before, times);
  out += ',';
  append_image(out, "after", after, times);
  out += ",\"source\":{\"connector\":\"keyfold\",\"ts_ms\":" + milliseconds +
         ",\"ts_us\":" + number_text(source.time.time_since_epoch().count()) +
         ",\"lsn\":" + number_text(source.version) + "},\"op\":\"";
  out += op;
  out += "\",\"ts_ms\":" + milliseconds + '}';
}

/// Writes the changes of one version. Those that leave a key come first, since a row that arrives at the key
/// in the same version has the same sequence and must be the later one.
template <class Rows>
class JsonEventWriter {
  using Row = typename Rows::Row;
  using Parts = typename Rows::KeyParts;

 public:
  JsonEventWriter(JsonWriter writer, JsonTimes times) : writer_(std::move(writer)), times_(times) {}

  /// `changes`: a range of Change<Row>.
  template <class Changes>
  void write(const Changes& changes, const EventSource& source) {
    for (const Change<Row>& change : changes) {
      if (leaves_key(change)) write_event('d', change.before(), nullptr, source);
    }
    for (const Change<Row>& change : changes) {
      if (change.after() == nullptr) continue;
      const bool arrives = change.before() == nullptr || leaves_key(change);
      write_event(arrives ? 'c' : 'u', arrives ? nullptr : change.before(), change.after(), source);
    }
  }

  void finish() { writer_.finish(); }

 private:
  static bool leaves_key(const Change<Row>& change) {
    if (change.before() == nullptr) return false;
    return change.after() == nullptr ||
           !detail::equal_values(Parts::of(*change.before()), Parts::of(*change.after()));
  }

  void write_event(char op, const Row* before, const Row* after, const EventSource& source) {
    writer_.write([&](std::string& line) { append_event(line, op, before, after, source, times_); });
  }

  JsonWriter writer_;
  JsonTimes times_;
};

/// Runs of changes of one version, which a feed has one after the other.
template <class Rows, class Row>
void write_feed(JsonEventWriter<Rows>& writer, std::span<const FeedChange<Row>> feed) {
  while (!feed.empty()) {
    const EventSource source{feed.front().version(), feed.front().timestamp()};
    const auto end = std::ranges::find_if(
        feed, [&](const FeedChange<Row>& change) { return change.version() != source.version; });
    const auto count = static_cast<std::size_t>(end - feed.begin());
    writer.write(feed.first(count), source);
    feed = feed.subspan(count);
  }
}

}  // namespace keyfold::detail
