// The core, and no use of it.
#include <keyfold/keyfold.hpp>

int main() {}
