#pragma once

namespace troupe {

/// The commit that this program was built from, "-dirty" behind it when something was changed;
/// "unknown" outside a repository. Written at each build, by cmake/commit.cmake.
extern const char* const build_commit;

}  // namespace troupe
