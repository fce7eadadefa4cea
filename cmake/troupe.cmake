# Flags live on an interface target; every folder is one library made by troupe_add_library.

add_library(troupe_flags INTERFACE)
add_library(troupe::flags ALIAS troupe_flags)
target_compile_options(troupe_flags INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor
  -Woverloaded-virtual -Wcast-qual -Wformat=2 -Wimplicit-fallthrough
  # GCC 12's false alarms in optimised std::string (bug 105329) and std::variant (bug 105562).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict> $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
if(TROUPE_DEVELOPER)
  target_compile_options(troupe_flags INTERFACE -Werror)
endif()
if(TROUPE_SANITIZE)
  target_compile_options(troupe_flags INTERFACE -fsanitize=${TROUPE_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(troupe_flags INTERFACE -fsanitize=${TROUPE_SANITIZE})
  target_compile_definitions(troupe_flags INTERFACE TROUPE_SANITIZED=1)
  if(TROUPE_SANITIZE STREQUAL "thread")  # of Asio's fences, which it does not see
    target_compile_options(troupe_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
  endif()
endif()
target_include_directories(troupe_flags INTERFACE "${PROJECT_SOURCE_DIR}")

# troupe_add_library(core SOURCES a.cpp LINK troupe::x PRIVATE_LINK y PCH <json> ...)
# Makes troupe_core, alias troupe::core. PCH lists headers worth precompiling for that folder.
function(troupe_add_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK;PRIVATE_LINK;PCH" ${ARGN})
  add_library(troupe_${name} STATIC ${arg_SOURCES})
  add_library(troupe::${name} ALIAS troupe_${name})
  target_link_libraries(troupe_${name} PUBLIC ${arg_LINK} PRIVATE troupe::flags ${arg_PRIVATE_LINK})
  target_include_directories(troupe_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  if(arg_PCH)
    target_precompile_headers(troupe_${name} PRIVATE ${arg_PCH})
  endif()
endfunction()

# troupe_add_tests(core LINK troupe::core SOURCES x_test.cpp): one binary, one CTest entry per case.
# REAL_TIME: its deadlines are the machine's, so it runs with no other test beside it.
function(troupe_add_tests name)
  cmake_parse_arguments(arg "REAL_TIME" "TIMEOUT" "SOURCES;LINK;PCH" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  add_executable(${name}_test ${arg_SOURCES})
  target_link_libraries(${name}_test PRIVATE troupe::flags ${arg_LINK} Catch2::Catch2WithMain)
  # The code under test is optimised, the tests need not be: they are half of what is compiled.
  target_compile_options(${name}_test PRIVATE $<$<CONFIG:Release>:-O0>)
  target_precompile_headers(${name}_test PRIVATE <catch2/catch_test_macros.hpp> <string> <vector> ${arg_PCH})
  if(TROUPE_SANITIZE)
    math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * 10")
  endif()
  catch_discover_tests(${name}_test TEST_PREFIX "${name}: " DISCOVERY_MODE PRE_TEST
    PROPERTIES TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 4 RUN_SERIAL ${arg_REAL_TIME})
endfunction()
