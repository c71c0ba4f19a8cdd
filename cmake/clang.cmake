# Chooses clang: the oldest supported one where it is installed, else whatever `clang++` is.
find_program(KEYFOLD_CLANG NAMES clang++-14 clang++ REQUIRED)
set(CMAKE_CXX_COMPILER "${KEYFOLD_CLANG}")
