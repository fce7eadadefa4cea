find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)  # before CAF: CAF::openssl names OpenSSL::SSL but does not look for it
find_package(CAF REQUIRED COMPONENTS core)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(Boost 1.81 REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(CLI11 REQUIRED)
find_package(tl-expected REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(seccomp REQUIRED IMPORTED_TARGET libseccomp)
pkg_check_modules(re2 REQUIRED IMPORTED_TARGET re2)
pkg_check_modules(python REQUIRED IMPORTED_TARGET python3-embed>=3.10)

# Header-only, found as files: their packages' CMake files want more than the headers.
find_path(MINJA_INCLUDE minja/minja.hpp REQUIRED)
find_path(VALIJSON_INCLUDE valijson/validator.hpp REQUIRED)
add_library(troupe_minja INTERFACE)
target_include_directories(troupe_minja SYSTEM INTERFACE "${MINJA_INCLUDE}")
add_library(troupe_valijson INTERFACE)
target_include_directories(troupe_valijson SYSTEM INTERFACE "${VALIJSON_INCLUDE}")

# yaml-cpp 0.7 exports no namespaced target.
if(NOT TARGET yaml-cpp::yaml-cpp)
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()

if(TROUPE_DEVELOPER)
  find_package(Catch2 3 REQUIRED)
  include(Catch)
endif()
