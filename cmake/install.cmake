include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(config_dir ${CMAKE_INSTALL_DATADIR}/cmake/keyfold)
install(TARGETS keyfold EXPORT keyfoldTargets FILE_SET HEADERS)
install(EXPORT keyfoldTargets NAMESPACE keyfold:: DESTINATION ${config_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/keyfoldConfigVersion.cmake
  COMPATIBILITY SameMajorVersion ARCH_INDEPENDENT)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/keyfoldConfig.cmake ${PROJECT_BINARY_DIR}/keyfoldConfigVersion.cmake
  DESTINATION ${config_dir})

# For those who build without CMake. Boost has no such file: its headers must be where the compiler looks.
set(pkgconfig_dir ${CMAKE_INSTALL_DATADIR}/pkgconfig)
file(RELATIVE_PATH prefix_from_pc /prefix/${pkgconfig_dir} /prefix)
string(REGEX REPLACE "/$" "" prefix_from_pc ${prefix_from_pc})
configure_file(${CMAKE_CURRENT_LIST_DIR}/keyfold.pc.in ${PROJECT_BINARY_DIR}/keyfold.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/keyfold.pc DESTINATION ${pkgconfig_dir})

install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
