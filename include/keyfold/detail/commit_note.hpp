// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/shared_text.hpp>
#include <keyfold/fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace keyfold::detail {

/// Numbers the writes of an application, see once().
struct AppNumber {
  std::string app;
  std::uint64_t number;
};

/// What a commit says about itself beside its changes.
struct CommitNote {
  std::string_view operation{};  // static storage
  SharedText parameters{};
  SharedText metadata{};
  std::vector<AppNumber> once{};
  std::optional<Timestamp> timestamp{};  // of a commit that is made again from a journal
};

}  // namespace keyfold::detail
