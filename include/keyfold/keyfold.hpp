// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

/// The core of keyfold: tables, merges, history. Free of iostream; print.hpp and csv.hpp are on their own.
#include <keyfold/apply_changes.hpp>
#include <keyfold/as_of.hpp>
#include <keyfold/change.hpp>
#include <keyfold/column.hpp>
#include <keyfold/constraint.hpp>
#include <keyfold/duplicates.hpp>
#include <keyfold/error.hpp>
#include <keyfold/expression.hpp>
#include <keyfold/fwd.hpp>
#include <keyfold/history.hpp>
#include <keyfold/index.hpp>
#include <keyfold/key.hpp>
#include <keyfold/load.hpp>
#include <keyfold/memory.hpp>
#include <keyfold/merge.hpp>
#include <keyfold/metrics.hpp>
#include <keyfold/options.hpp>
#include <keyfold/subscription.hpp>
#include <keyfold/table.hpp>
#include <keyfold/transaction.hpp>
#include <keyfold/version.hpp>
#include <keyfold/writer.hpp>
#include <keyfold/writes.hpp>

#ifndef KEYFOLD_NO_KF_ALIAS
namespace kf = keyfold;  // the short name the documentation uses
#endif
