#pragma once
// What every executor must do, each sentence a test case for each backend: "jail: ...", and so on.
// A backend that does not promise something says so in its abilities, and the case is skipped.

#include "tests/support/executor_fixture.hpp"

#include <filesystem>
#include <set>
#include <string>

namespace troupe::test {

/// One way to run the suite.
struct contract_backend {
  const char* name;   ///< "jail", "jail rootless"
  bool without_root;  ///< as root, the case runs in a process of its own that has given it up
  std::unique_ptr<executor> (*make)(reactor& io, const std::filesystem::path& scratch);
};

/// The executor of one case, with a scratch directory that must be empty at the end.
class contract_fixture : public executor_fixture {
public:
  explicit contract_fixture(const contract_backend& backend);
  ~contract_fixture();

  /// Skips the case where the backend does not promise what it tests.
  void needs(bool ability) const;
  [[nodiscard]] executor_abilities can() const { return backend->info().abilities; }

  /// The processes of a sandbox that `open` made, as the host sees them: first its first one.
  struct processes {
    int first = 0;   ///< our child
    int worker = 0;  ///< the interpreter, its child
  };
  [[nodiscard]] std::shared_ptr<sandbox> open_seen(processes& seen, sandbox_spec spec = {});

  /// True once nothing more runs in the sandbox: it refuses to.
  [[nodiscard]] bool is_gone(sandbox& s);

  /// Another executor of the same kind, e.g. in a process that will be killed.
  [[nodiscard]] std::unique_ptr<executor> make_another(reactor& r) const;
  [[nodiscard]] bool scratch_is_empty() const;

private:
  struct scratch_dir;
  explicit contract_fixture(const contract_backend& backend, std::unique_ptr<scratch_dir> dir);
  const contract_backend& made_by_;
  std::unique_ptr<scratch_dir> scratch_;
};

/// Children of a process, by any of its threads; and theirs.
[[nodiscard]] std::set<int> children_of(int pid);
[[nodiscard]] std::set<int> descendants_of(int pid);

/// True while the process runs; a zombie has ended.
[[nodiscard]] bool runs(int pid);

[[nodiscard]] millis since(time_point start);

/// Generous: the machine may be busy. A lost deadline would last for ever.
inline constexpr millis tolerance{5'000};

/// A spec with these tools.
[[nodiscard]] sandbox_spec spec_with(std::vector<tool_spec> tools);

/// Waits for `condition` as long as a busy machine may need.
[[nodiscard]] bool eventually(const std::function<bool()>& condition);

/// Registers a case for each backend.
class contract_case {
public:
  contract_case(void (*body)(contract_fixture&), const char* sentence, const char* tags,
                const char* file, unsigned line);
};

}  // namespace troupe::test

#define CONTRACT_JOIN_(a, b) a##b
#define CONTRACT_JOIN(a, b) CONTRACT_JOIN_(a, b)
#define CONTRACT_CASE_(body, sentence, tags)                                                       \
  static void body(troupe::test::contract_fixture& fx);                                            \
  static const troupe::test::contract_case CONTRACT_JOIN(body, _registered){body, sentence, tags,  \
                                                                            __FILE__, __LINE__};   \
  static void body([[maybe_unused]] troupe::test::contract_fixture& fx)

/// CONTRACT_CASE("what every executor does", "[tags]") { ... fx ... }
#define CONTRACT_CASE(sentence, tags)                                                              \
  CONTRACT_CASE_(CONTRACT_JOIN(contract_body_, __LINE__), sentence, tags)
