// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/metrics.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace keyfold::detail {

inline constexpr std::array metric_fields{&Metrics::source_rows,
                                          &Metrics::inserted,
                                          &Metrics::updated,
                                          &Metrics::deleted,
                                          &Metrics::unchanged,
                                          &Metrics::skipped,
                                          &Metrics::matched_updated,
                                          &Metrics::matched_deleted,
                                          &Metrics::not_matched_by_source_updated,
                                          &Metrics::not_matched_by_source_deleted,
                                          &Metrics::dropped_duplicates,
                                          &Metrics::dropped_late};
static_assert(metric_fields.size() * sizeof(std::size_t) == sizeof(Metrics), "all of them");

/// Metrics as the log keeps them. Of a commit of few rows each count is a byte; a table that is written to
/// row by row has as many commits as rows.
class PackedMetrics {
 public:
  PackedMetrics() = default;
  /// Throws std::bad_alloc.
  PackedMetrics(const Metrics& metrics) {  // NOLINT(google-explicit-constructor): it stands for them
    std::size_t bits = 0;
    for (std::size_t i = metric_fields.size(); i > 0; --i) {
      const std::size_t count = metrics.*metric_fields[i - 1];
      bits |= count;
      if (i > first_high) {
        high_ = high_ << 8U | static_cast<std::uint32_t>(count);
      } else {
        low_ = low_ << 8U | count;
      }
    }
    if (bits > 0xFF) large_ = std::make_unique<const Metrics>(metrics);
  }

  Metrics get() const noexcept {
    if (large_ != nullptr) return *large_;
    Metrics metrics;
    for (std::size_t i = 0; i < metric_fields.size(); ++i)
      metrics.*metric_fields[i] = (i < first_high ? low_ >> 8U * i : high_ >> 8U * (i - first_high)) & 0xFFU;
    return metrics;
  }

  /// Bytes outside of it.
  std::size_t bytes() const noexcept { return large_ != nullptr ? sizeof(Metrics) : 0; }

 private:
  static constexpr std::size_t first_high = 8;
  static_assert(metric_fields.size() <= first_high + 4, "a byte for each");

  std::unique_ptr<const Metrics> large_;  // if a count is too large for a byte
  std::uint64_t low_ = 0;                 // the first counts, from the lowest byte up
  std::uint32_t high_ = 0;                // the others
};

}  // namespace keyfold::detail
