# The program, and the library with its public headers: find_package(troupe), troupe::troupe.
include(CMakePackageConfigHelpers)

if(TARGET troupe)
  install(TARGETS troupe RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/troupe")
install(TARGETS troupe_shared EXPORT troupe-targets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(EXPORT troupe-targets NAMESPACE troupe:: DESTINATION "${package_dir}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/runtime/host/include/troupe"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.hpp")
# <troupe/error.hpp> is the core's, which it finds beside itself.
install(FILES "${PROJECT_SOURCE_DIR}/runtime/core/error.hpp"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/troupe/runtime/core")

configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/troupe-config.cmake.in"
  "${PROJECT_BINARY_DIR}/troupe-config.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/troupe-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/troupe-config.cmake"
  "${PROJECT_BINARY_DIR}/troupe-config-version.cmake" DESTINATION "${package_dir}")
