# Writes the commit that is being built into OUTPUT, a source file; only when it is another one.
execute_process(
  COMMAND git -C "${SOURCE}" describe --always --dirty --abbrev=12
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT commit)
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT
"#include \"runtime/host/build_commit.hpp\"

namespace troupe {
const char* const build_commit = \"${commit}\";
}
")
