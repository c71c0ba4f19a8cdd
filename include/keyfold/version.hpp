// Copyright 2026 the keyfold authors. Distributed under the Boost Software License, Version 1.0.
#pragma once

/// The version of keyfold, for the preprocessor: KEYFOLD_VERSION is 10203 for 1.2.3. The build reads it from
/// here. (keyfold::Version is another thing: the number of a commit.)
#define KEYFOLD_VERSION_MAJOR 0
#define KEYFOLD_VERSION_MINOR 1
#define KEYFOLD_VERSION_PATCH 0

#define KEYFOLD_VERSION (KEYFOLD_VERSION_MAJOR * 10000 + KEYFOLD_VERSION_MINOR * 100 + KEYFOLD_VERSION_PATCH)
