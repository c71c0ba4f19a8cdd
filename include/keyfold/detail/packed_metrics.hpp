// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/metrics.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
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

/// Metrics as the log keeps them. Of a commit of few rows each count is a byte; a table that is written to
/// row by row has as many commits as rows.
class PackedMetrics {
 public:
  PackedMetrics() = default;
  /// Throws std::bad_alloc.
  PackedMetrics(const Metrics& metrics) {  // NOLINT(google-explicit-constructor): it stands for them
    std::size_t bits = 0;
    for (const auto field : metric_fields) bits |= metrics.*field;
    if (bits > std::numeric_limits<std::uint8_t>::max()) {
      large_ = std::make_unique<const Metrics>(metrics);
    } else {
      for (std::size_t i = 0; i < metric_fields.size(); ++i)
        small_[i] = static_cast<std::uint8_t>(metrics.*metric_fields[i]);
    }
  }

  Metrics get() const noexcept {
    if (large_ != nullptr) return *large_;
    Metrics metrics;
    for (std::size_t i = 0; i < metric_fields.size(); ++i) metrics.*metric_fields[i] = small_[i];
    return metrics;
  }

  /// Bytes outside of it.
  std::size_t bytes() const noexcept { return large_ != nullptr ? sizeof(Metrics) : 0; }

 private:
  std::unique_ptr<const Metrics> large_;  // if a count is too large for `small_`
  std::array<std::uint8_t, metric_fields.size()> small_{};
};

}  // namespace keyfold::detail
