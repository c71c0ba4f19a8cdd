include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(config_dir ${CMAKE_INSTALL_DATADIR}/cmake/keyfold)
install(TARGETS keyfold EXPORT keyfoldTargets FILE_SET HEADERS)
foreach(library IN ITEMS keyfold_serialization keyfold_json)
  if(TARGET ${library})
    install(TARGETS ${library} EXPORT keyfoldTargets)
  endif()
endforeach()
install(EXPORT keyfoldTargets NAMESPACE keyfold:: DESTINATION ${config_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/keyfoldConfigVersion.cmake
  COMPATIBILITY SameMajorVersion ARCH_INDEPENDENT)
install(FILES ${CMAKE_CURRENT_LIST_DIR}/keyfoldConfig.cmake ${PROJECT_BINARY_DIR}/keyfoldConfigVersion.cmake
  DESTINATION ${config_dir})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
