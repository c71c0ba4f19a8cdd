// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

#include <keyfold/detail/commit_note.hpp>

namespace keyfold::detail {

/// What a merge or feed that is being put together has beside its rule, whose type changes with every clause.
template <class Target, class SourceRange>
struct WriteInput {
  Target* target;
  SourceRange source;  // a reference for an lvalue
  CommitNote note;
};

}  // namespace keyfold::detail
