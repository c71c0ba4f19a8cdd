include(CMakeFindDependencyMacro)
find_dependency(Boost 1.81 CONFIG OPTIONAL_COMPONENTS serialization json)
include("${CMAKE_CURRENT_LIST_DIR}/keyfoldTargets.cmake")

# Made here and not installed, since the machine that installs need not have what the one that uses has.
function(keyfold_add_component component)
  if(TARGET Boost::${component} AND NOT TARGET keyfold::${component})
    add_library(keyfold::${component} INTERFACE IMPORTED)
    target_link_libraries(keyfold::${component} INTERFACE keyfold::keyfold Boost::${component} ${ARGN})
  endif()
endfunction()

if(TARGET Boost::serialization)
  find_dependency(Threads)
endif()
keyfold_add_component(serialization Threads::Threads)
keyfold_add_component(json)

foreach(component IN LISTS ${CMAKE_FIND_PACKAGE_NAME}_FIND_COMPONENTS)
  if(TARGET keyfold::${component})
    set(${CMAKE_FIND_PACKAGE_NAME}_${component}_FOUND TRUE)
  elseif(${CMAKE_FIND_PACKAGE_NAME}_FIND_REQUIRED_${component})
    set(${CMAKE_FIND_PACKAGE_NAME}_FOUND FALSE)
    set(${CMAKE_FIND_PACKAGE_NAME}_NOT_FOUND_MESSAGE
      "keyfold has no component ${component} here; it has serialization and json where those libraries of Boost are found")
  endif()
endforeach()
