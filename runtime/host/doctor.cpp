#include "runtime/host/doctor.hpp"

#include "config/model_name.hpp"
#include "config/options.hpp"
#include "executors/jail/jail_executor.hpp"
#include "executors/process/process_executor.hpp"
#include "runtime/journal/journal.hpp"
#include "runtime/net/proxy_settings.hpp"
#include "runtime/net/reactor.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <future>
#include <thread>

#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace troupe {
namespace {

using namespace std::chrono_literals;
using state = finding::state;

finding look_at_kernel() {
  utsname os{};
  uname(&os);
  return {"machine", state::works,
          fmt::format("{} {}, {} cores, {}", os.sysname, os.release,
                      std::thread::hardware_concurrency(),
                      geteuid() == 0 ? "root" : fmt::format("uid {} (rootless)", geteuid())),
          false};
}

finding look_at_descriptors() {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  auto sandboxes = files.rlim_cur / 10;
  return {"descriptors", files.rlim_cur >= 4096 ? state::works : state::weaker,
          fmt::format("{} may be open: room for {} sandboxes at once{}", files.rlim_cur, sandboxes,
                      files.rlim_cur >= 4096 ? "" : "; raise it with ulimit -n"),
          false};
}

finding look_at_journal() {
  auto path = std::filesystem::temp_directory_path() / fmt::format("troupe-doctor-{}.db", getpid());
  auto opened = journal::open(path.string());
  auto ok = opened.has_value();
  auto detail = ok ? "SQLite in WAL mode can be written in " + path.parent_path().string()
                   : opened.error().detail;
  if (ok)
    opened->reset();
  for (const char* suffix : {"", "-wal", "-shm", ".lock"})
    std::filesystem::remove(path.string() + suffix);
  return {"journal", ok ? state::works : state::missing, detail, true};
}

/// Opens a sandbox, runs 1 + 1, closes it, and says how long each took.
struct sandbox_trial {
  result<snippet_outcome> outcome = fail(errc::timeout, "no answer");
  close_report closed;
  micros first{0};
  std::string isolation;
};

sandbox_trial try_sandbox(executor& backend, reactor& io) {
  sandbox_trial trial;
  std::promise<void> over;
  auto began = steady_clock::now();
  sandbox_spec spec;
  std::shared_ptr<sandbox> box;
  backend.open(spec, [&](result<std::shared_ptr<sandbox>> opened) {
    if (!opened) {
      trial.outcome = fail(opened.error());
      over.set_value();
      return;
    }
    box = std::move(*opened);
    trial.isolation = box->isolation();
    box->listen({}, {});
    snippet one{"1 + 1", false, io.now() + 10s, io.now() + 11s};
    auto ran = box->run(one, [&](snippet_outcome o) {
      trial.first = std::chrono::duration_cast<micros>(steady_clock::now() - began);
      trial.outcome = std::move(o);
      box->close([&](close_report r) {
        trial.closed = std::move(r);
        over.set_value();
      });
    });
    if (!ran) {
      trial.outcome = fail(ran.error());
      over.set_value();
    }
  });
  over.get_future().wait();
  return trial;
}

std::vector<finding> look_at_jail() {
  reactor io;
  std::vector<finding> out;
  {
    jail_executor jail{io, {}};
    auto trial = try_sandbox(jail, io);
    auto info = jail.info();
    if (!trial.outcome) {
      out.push_back({"jail", state::missing, trial.outcome.error().detail, true});
      return out;
    }
    auto right = trial.outcome->result && trial.outcome->result->text == "2";
    out.push_back({"jail", right ? state::works : state::missing,
                   right
                     ? fmt::format("1 + 1 = 2 in Python {}, first answer after {:.1f} ms (zygote's "
                                   "start included)",
                                   info.python, static_cast<double>(trial.first.count()) / 1000.0)
                     : "1 + 1 was not 2: " + trial.outcome->reason,
                   true});
    out.push_back(
      {"isolation", info.missing.empty() ? state::works : state::weaker, trial.isolation, false});
    for (const auto& m : info.missing)
      out.push_back({"  not in force", state::weaker, m, false});
    out.push_back({"teardown", trial.closed.clean() ? state::works : state::missing,
                   trial.closed.clean()
                     ? fmt::format("verified gone after {:.1f} ms",
                                   static_cast<double>(trial.closed.teardown.count()) / 1000.0)
                     : trial.closed.detail,
                   true});
  }
  io.stop();
  return out;
}

/// Works or not, nobody needs it: it is used only when it is asked for.
finding look_at_process() {
  reactor io;
  process_executor backend{io};
  auto trial = try_sandbox(backend, io);
  auto info = backend.info();
  if (!trial.outcome)
    return {"executor process", state::weaker, trial.outcome.error().detail, false};
  auto right = trial.outcome->result && trial.outcome->result->text == "2";
  if (!right || !trial.closed.clean())
    return {"executor process", state::weaker,
            right ? trial.closed.detail : "1 + 1 was not 2: " + trial.outcome->reason, false};
  return {"executor process", state::weaker,
          fmt::format("can be asked for, in Python {}; isolation: {}", info.python, info.isolation),
          false};
}

/// The way to one scheme's hosts: straight, through a proxy, or barred by a setting.
finding look_at_proxy(std::string_view scheme, const proxy_settings& settings) {
  auto what = "way to " + std::string{scheme} + "://";
  const auto& chosen = scheme == "https" ? settings.for_https : settings.for_http;
  if (!chosen || settings.never)
    return {what, state::works, "straight, no proxy is set", false};
  if (!*chosen)
    return {what, state::weaker, chosen->error().detail, false};
  return {what, state::works,
          fmt::format("through {}{}", to_string(**chosen),
                      settings.exempt.empty() ? "" : ", but for what NO_PROXY names"),
          false};
}

std::vector<finding> look_at_network() {
  auto env = process_environment();
  auto settings = proxies_from(env, "");
  std::vector<finding> out{look_at_proxy("https", settings), look_at_proxy("http", settings)};
  if (env("REQUEST_METHOD") && env("HTTP_PROXY"))
    out.push_back({"HTTP_PROXY", state::weaker,
                   "is not read while REQUEST_METHOD is set (httpoxy); use http_proxy", false});
  for (const auto& entry : settings.not_understood)
    out.push_back({"NO_PROXY", state::weaker,
                   "'" + entry + "' is no host name, address or network, and is left out", false});
  if (auto file = env("SSL_CERT_FILE"); file && !file->empty()) {
    auto readable = access(file->c_str(), R_OK) == 0;
    out.push_back(
      {"certificates", readable ? state::works : state::weaker,
       "those in " + *file + (readable ? "" : ", which cannot be read") + " (SSL_CERT_FILE)",
       false});
  }
  return out;
}

std::vector<finding> look_at_keys() {
  std::vector<finding> out;
  auto env = process_environment();
  for (const auto& p : providers()) {
    if (!p.needs_key)
      continue;
    std::string names, found;
    for (auto v : p.key_variables) {
      names += (names.empty() ? "" : " or ") + std::string{v};
      if (found.empty() && env(std::string{v}))
        found = v;
    }
    out.push_back({"key for " + std::string{p.name} + "/",
                   found.empty() ? state::weaker : state::works,
                   found.empty() ? "none; set " + names + " to use it" : "in " + found, false});
  }
  return out;
}

}  // namespace

std::vector<finding> examine_machine() {
  std::vector<finding> out{look_at_kernel(), look_at_descriptors(), look_at_journal()};
  for (auto& f : look_at_jail())
    out.push_back(std::move(f));
  out.push_back(look_at_process());
  for (auto& f : look_at_network())
    out.push_back(std::move(f));
  for (auto& f : look_at_keys())
    out.push_back(std::move(f));
  return out;
}

std::string show(const std::vector<finding>& findings) {
  static constexpr const char* marks[] = {"ok", "--", "NO"};
  std::string out;
  for (const auto& f : findings)
    out += fmt::format("{}  {:<22} {}\n", marks[static_cast<int>(f.how)], f.what, f.detail);
  return out;
}

json to_json(const std::vector<finding>& findings) {
  static constexpr const char* words[] = {"works", "weaker", "missing"};
  auto out = json::array();
  for (const auto& f : findings)
    out.push_back({{"what", f.what},
                   {"state", words[static_cast<int>(f.how)]},
                   {"detail", f.detail},
                   {"needed", f.needed}});
  return out;
}

bool all_needed_work(const std::vector<finding>& findings) {
  for (const auto& f : findings)
    if (f.needed && f.how == finding::state::missing)
      return false;
  return true;
}

}  // namespace troupe
