#include "executors/worker_request.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

namespace {

/// Plays an honest or a lying worker with a file to a get request; the owner's answer.
struct get_play {
  std::size_t max_bytes = 2'000'000;
  std::optional<result<std::string>> answer;
  std::unique_ptr<worker_request> request =
    make_get_request("f", max_bytes, {}, [this](auto r) { answer = std::move(r); });
  std::uint32_t frames = 0;

  result<bool> reply(worker::done d) {
    auto more = request->next(++frames, &d);
    if (!more)
      return fail(more.error());
    if (!*more)
      request->finish({.reply = std::move(d)});
    return more->has_value();
  }
};

worker::done piece(std::string bytes, std::uint64_t of) {
  worker::done d;
  d.data = std::move(bytes);
  d.file_bytes = of;
  return d;
}

const std::size_t full = worker::get_piece_bytes({});

}  // namespace

TEST_CASE("a file is got in pieces until a short one", "[request]") {
  get_play play;
  CHECK(play.request->next(1, nullptr));
  CHECK(play.reply(piece(std::string(full, 'a'), full + 1)) == true);
  CHECK(play.reply(piece("b", full + 1)) == false);
  CHECK(play.answer.value() == std::string(full, 'a') + "b");
}

TEST_CASE("a file too large is refused at its first piece, by what the worker says", "[request]") {
  get_play play;
  CHECK(play.reply(piece("a", 2'000'001)) == false);
  CHECK(play.answer.value().error().code == errc::over_budget);
}

TEST_CASE("a file that grows without end is refused at the limit, whatever the worker says",
          "[request]") {
  get_play play;
  int pieces = 1;
  while (play.reply(piece(std::string(full, 'a'), 1)).value())
    ++pieces;
  CHECK(pieces == 6);
  CHECK(play.answer.value().error().code == errc::over_budget);
}

TEST_CASE("a piece that nobody asked for breaks the protocol", "[request]") {
  get_play play;
  auto larger = play.reply(piece(std::string(full + 1, 'a'), 1));
  CHECK(larger.error().code == errc::corrupt);
  CHECK(play.reply({}).error().code == errc::corrupt);
  auto command = make_shell_request({.argv = {"true"}}, [](const shell_outcome&) {});
  worker::done without_end;
  CHECK(command->next(1, &without_end).error().code == errc::corrupt);
}

TEST_CASE("a put stops at its first failure", "[request]") {
  std::optional<result<void>> answer;
  auto put = make_put_request({"f", std::string(worker::put_piece_bytes * 3, 'x')},
                              [&](auto r) { answer = std::move(r); });
  REQUIRE(put->next(1, nullptr).value());
  worker::done failed;
  CHECK(put->next(2, &failed).value().has_value());
  failed.failure = "f: No space left on device";
  failed.kind = errc::over_budget;
  CHECK(!put->next(3, &failed).value());
  put->finish({.reply = failed});
  CHECK(answer->error() == error{errc::over_budget, "f: No space left on device"});
}

TEST_CASE("a command that ended before its interrupt came has ended by itself", "[request]") {
  shell_outcome seen;
  auto ended_with = [&](worker::command_exit exit, bool flooded) {
    auto command = make_shell_request({.argv = {"x"}}, [&](auto o) { seen = std::move(o); });
    worker::done d;
    d.exit = exit;
    command->finish({.reply = d, .reason = "why", .interrupted = true, .flooded = flooded});
    return seen.end;
  };
  CHECK(ended_with({3, 0, false}, false) == shell_end::exited);
  CHECK(seen.status == 3);
  CHECK(ended_with({0, 15, false}, false) == shell_end::signalled);
  CHECK(seen.status == 15);
  CHECK(seen.reason.empty());
  CHECK(ended_with({0, 9, true}, false) == shell_end::soft_timeout);
  CHECK(seen.reason == "why");
  CHECK(ended_with({0, 9, true}, true) == shell_end::output_limit);
}
