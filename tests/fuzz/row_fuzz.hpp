// What is done with bytes that may be rows: the body of the fuzz target and of its replay as a test.
#pragma once

#include <keyfold/snapshot.hpp>

#include "fuzz/snapshot_fuzz.hpp"

namespace keyfold_test {

// An input: how it is read, a schema if there is one, rows to the end.
inline constexpr unsigned row_fuzz_type = 3;  // Wide, Narrow, Person, Tick
inline constexpr unsigned row_fuzz_schema = 4;

template <class Row>
std::string encoded_rows(const std::vector<Row>& rows) {
  keyfold::detail::ByteBuffer out;
  keyfold::detail::Encoder encoder(out);
  for (const Row& row : rows) encoder.put(row);
  return {reinterpret_cast<const char*>(out.data()), out.size()};
}

/// Throws what RowDecoder throws.
template <class Row>
std::vector<Row> decoded_rows(keyfold::detail::ByteReader in, const keyfold::detail::StoredSchema& schema) {
  const keyfold::detail::RowDecoder<Row> decoder(schema);
  keyfold::detail::Decoder values(in);
  std::vector<Row> rows;
  while (in.left() != 0 && rows.size() < 100) {  // a row may take no bytes
    decoder.read(values, rows.emplace_back());
  }
  return rows;
}

/// Returns whether the rows were read. Aborts, or worse, if something is wrong.
template <class Row>
bool try_to_decode(std::string_view bytes, bool with_schema) {
  keyfold::detail::ByteReader in(std::as_bytes(std::span(bytes)));
  const auto own = keyfold::detail::schema_of<Row>();
  std::vector<Row> rows;
  try {
    const auto schema = with_schema ? keyfold::detail::get_schema(in) : own;
    rows = decoded_rows<Row>(in, schema);
  } catch (const keyfold::Error&) {
    return false;
  } catch (const keyfold::detail::DecodeError&) {
    return false;
  }
  const std::string again = encoded_rows(rows);
  if (again.empty()) return true;
  const auto decoded = decoded_rows<Row>(keyfold::detail::ByteReader(std::as_bytes(std::span(again))), own);
  demand(decoded.size() == rows.size());
  demand(encoded_rows(decoded) == again);
  return true;
}

inline bool fuzz_rows(std::string_view input) {
  using namespace snapshot_samples;
  if (input.empty()) return false;
  const auto how = static_cast<unsigned char>(input[0]);
  const bool with_schema = (how & row_fuzz_schema) != 0;
  switch (how & row_fuzz_type) {
    case 0:
      return try_to_decode<Wide>(input.substr(1), with_schema);
    case 1:
      return try_to_decode<Narrow>(input.substr(1), with_schema);
    case 2:
      return try_to_decode<Person>(input.substr(1), with_schema);
    default:
      return try_to_decode<Tick>(input.substr(1), with_schema);
  }
}

}  // namespace keyfold_test
