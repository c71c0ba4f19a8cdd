include(CMakeFindDependencyMacro)
find_dependency(Boost 1.81 CONFIG OPTIONAL_COMPONENTS serialization)
find_dependency(range-v3)
include("${CMAKE_CURRENT_LIST_DIR}/keyfoldTargets.cmake")
