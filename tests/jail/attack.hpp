#pragma once
// Hostile snippets, and how a sandbox has to come out of them.

#include "tests/jail/jail_fixture.hpp"

#include <span>
#include <string>
#include <string_view>

namespace troupe::test {

/// One thing that hostile code tries. Its code ends in an expression that is True when the wall
/// held, and the sandbox must answer afterwards.
struct attack {
  const char* what;
  const char* code;
};

/// What the attacks' code may use: `sys` makes a raw x86-64 system call, `err` calls a function;
/// both give the name of the errno, or "done".
inline constexpr const char* attack_tools = R"py(
import ctypes, errno, os, signal, socket, time
libc = ctypes.CDLL(None, use_errno=True)
def sys(number, *args):
  ctypes.set_errno(0)
  r = libc.syscall(number, *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
  return "done" if r >= 0 else errno.errorcode[ctypes.get_errno()]
def err(f, *args):
  try: f(*args)
  except OSError as e: return errno.errorcode[e.errno]
  return "done"
)py";

/// The numbers of raw system calls are x86-64's.
inline bool can_try(const attack& a) {
#ifdef __x86_64__
  return a.code != nullptr;
#else
  return std::string_view{a.code}.find("sys(") == std::string_view::npos;
#endif
}

/// Tries each in a sandbox of its own, beside one that must not notice.
inline void try_attacks(std::span<const attack> attacks, const sandbox_spec& spec = {}) {
  jail_fixture fx;
  fx.checkpoints = true;
  auto other = fx.open();
  fx.run(*other, "kept = 5");
  for (const auto& a : attacks) {
    INFO(a.what);
    if (!can_try(a))
      continue;
    auto s = fx.open(spec);
    REQUIRE(describe(fx.run(*s, attack_tools)) == "ok");
    auto o = fx.run(*s, a.code);
    INFO(describe(o) << "\n" << o.logs << (o.error ? o.error->traceback : ""));
    CHECK(tagged(o) == "true");
    auto after = fx.run(*s, "1 + 1");
    INFO(describe(after));
    CHECK(tagged(after) == "2");
    CHECK(fx.close(*s).clean());
    CHECK(tagged(fx.run(*other, "kept")) == "5");
  }
}

}  // namespace troupe::test
