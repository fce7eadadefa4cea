#include "executors/frame_splitter.hpp"
#include "executors/spec_check.hpp"
#include "executors/worker_protocol.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

namespace {

json body_of(const std::string& frame) {
  frame_splitter frames{1u << 24};
  frames.feed(frame);
  auto next = frames.next();
  REQUIRE(next);
  REQUIRE(*next);
  CHECK(frames.pending() == 0);
  return json::parse(**next);
}

}  // namespace

TEST_CASE("the parameters of a tool keep their order on the way to the worker", "[protocol]") {
  sandbox_spec spec;
  tool_spec t;
  t.name = "z";
  t.parameters = ordered_json::parse(R"({"properties": {"zeta": {}, "alpha": {}}})");
  spec.tools = {t};
  auto frame = worker::init_frame(1, spec);
  CHECK(frame.find("zeta") < frame.find("alpha"));
}

TEST_CASE("a large file goes in pieces, each with its own id", "[protocol]") {
  auto frames = worker::put_frames(7, {"a/b", std::string(1'000'000, 'x')});
  REQUIRE(frames.size() == 3);
  std::size_t total = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    auto body = body_of(frames[i]);
    CHECK(body["id"] == 7 + i);
    CHECK(body["append"] == (i > 0));
    total += body["data"].get<std::string>().size();
  }
  CHECK(total >= 1'333'333);
  CHECK(worker::put_frames(1, {"empty", ""}).size() == 1);
}

TEST_CASE("code and answers that are no UTF-8 still make a frame", "[protocol]") {
  CHECK(body_of(worker::run_frame(1, {.code = "a\xff"}, false))["code"] == "a\uFFFD");
  CHECK(body_of(worker::answer_frame(1, fail(errc::denied, "b\xff")))["error"] == "b\uFFFD");
}

TEST_CASE("a reply is read the same way with and without a tree", "[protocol]") {
  auto is_as_with_space = [](const std::string& body) {
    auto plain = worker::parse(body), tree = worker::parse(" " + body);
    CAPTURE(body);
    REQUIRE(plain.has_value() == tree.has_value());
    if (!plain)
      return;
    const auto &x = std::get<worker::done>(*plain), &y = std::get<worker::done>(*tree);
    CHECK(x.id == y.id);
    CHECK(x.cpu == y.cpu);
    CHECK(x.max_rss_bytes == y.max_rss_bytes);
    CHECK(x.is_final == y.is_final);
    REQUIRE(x.result.has_value() == y.result.has_value());
    if (x.result) {
      CHECK(x.result->text == y.result->text);
      CHECK(x.result->tagged == y.result->tagged);
      CHECK(x.result->tagged.type() == y.result->tagged.type());
    }
  };
  auto reply = [](const std::string& result, const std::string& id, const std::string& cpu) {
    return R"({"end":"ok",)" + result + R"("op":"done","id":)" + id + R"(,"usage":{"cpu_us":)" + cpu
           + R"(,"rss_kb":13588}})";
  };
  for (std::string tagged : {"2",
                             "-7",
                             "0",
                             "-0",
                             "007",
                             "2.0",
                             "1e3",
                             "9223372036854775807",
                             "9223372036854775808",
                             "-9223372036854775808",
                             "true",
                             "null",
                             "nul",
                             R"("a b")",
                             R"("\n")",
                             "\"\"",
                             "\"\xc3\xa9\"",
                             "\"\xff\"",
                             "[1]",
                             "{}",
                             ""})
    is_as_with_space(reply(R"("result":{"tagged":)" + tagged + R"(,"text":"t"},)", "5", "41770"));
  for (std::string id : {"1", "4294967295", "4294967296", "-1", "01", "1.0", ""})
    is_as_with_space(reply("", id, "7"));
  for (std::string cpu : {"0", "18446744073709551615", "18446744073709551616", "-1", "00"})
    is_as_with_space(reply("", "1", cpu));
  for (const auto* body :
       {R"({"end":"ok","op":"done","id":1,"usage":{"cpu_us":1,"rss_kb":1}} )",
        R"({"end":"ok","op":"done","id":1,"usage":{"cpu_us":1,"rss_kb":1}}})",
        R"({"end":"ok","op":"done","id":1,"usage":{"cpu_us":1,"rss_kb":1},"final":true})",
        R"({"end":"ok","result":{"tagged":1,"text":"1","more":2},"op":"done","id":1})",
        R"({"end":"ok","result":{"tagged":1,"text":"1"},"op":"done","id":1,"usage":{"cpu_us":1}})"})
    is_as_with_space(body);
}

TEST_CASE("a piece of a file and a command's end are read", "[protocol]") {
  auto piece = worker::parse(R"({"op": "done", "id": 3, "data": "AP8=", "size": 9})");
  REQUIRE(piece);
  CHECK(std::get<worker::done>(*piece).data == std::string("\0\xff", 2));
  CHECK(std::get<worker::done>(*piece).file_bytes == 9);
  auto command =
    worker::parse(R"({"op": "done", "id": 3, "exit": {"status": 0, "signal": 9, "killed": true}})");
  REQUIRE(command);
  CHECK(std::get<worker::done>(*command).exit->signal == 9);
  CHECK(std::get<worker::done>(*command).exit->killed);
}

TEST_CASE("the worker names only failures that are its own to name", "[protocol]") {
  auto kind = [](std::string name) {
    auto m = worker::parse(R"({"op": "done", "id": 1, "error": "x", "kind": ")" + name + "\"}");
    REQUIRE(m);
    return std::get<worker::done>(*m).kind;
  };
  CHECK(kind("not_found") == errc::not_found);
  CHECK(kind("over_budget") == errc::over_budget);
  CHECK(kind("internal") == errc::invalid_argument);
  CHECK(kind("?") == errc::invalid_argument);
}

TEST_CASE("a reply is read in full", "[protocol]") {
  auto m =
    worker::parse(R"({"op": "done", "id": 3, "end": "raised", "usage": {"cpu_us": 5, "rss_kb": 2},
    "error": {"type": "E", "message": "m", "line": 4, "traceback": "t"}})");
  REQUIRE(m);
  auto& d = std::get<worker::done>(*m);
  CHECK(d.id == 3);
  CHECK(d.end == snippet_end::raised);
  CHECK(d.error->line == 4);
  CHECK(d.cpu == micros{5});
  CHECK(d.max_rss_bytes == 2048);
  CHECK(!d.result);
}

TEST_CASE("the arguments of a call arrive as plain JSON", "[protocol]") {
  auto m = worker::parse(R"({"op": "call", "id": 1, "call": 2, "tool": "t",
    "arguments": {"x": {"__type__": "tuple", "data": [1, {"__type__": "float", "data": "nan"}]}}})");
  REQUIRE(m);
  auto& c = std::get<worker::call>(*m);
  CHECK(c.snippet == 1);
  CHECK(c.id == 2);
  CHECK(dump_json(c.arguments) == R"({"x":[1,"nan"]})");
}

TEST_CASE("every member of the wrong type makes the frame corrupt", "[protocol]") {
  for (auto* text : {
         "",
         "null",
         "[]",
         "{}",
         R"({"op": 1})",
         R"({"op": "more"})",
         R"({"op": "done"})",
         R"({"op": "done", "id": -1})",
         R"({"op": "done", "id": 4294967296})",
         R"({"op": "done", "id": "1"})",
         R"({"op": "done", "id": 1.0})",
         R"({"op": "done", "id": 1, "end": "hard_timeout"})",
         R"({"op": "done", "id": 1, "end": "raised"})",
         R"({"op": "done", "id": 1, "end": "raised", "error": {"type": "E"}})",
         R"({"op": "done", "id": 1, "error": 5})",
         R"({"op": "done", "id": 1, "usage": []})",
         R"({"op": "done", "id": 1, "usage": {"cpu_us": -5, "rss_kb": 1}})",
         R"({"op": "done", "id": 1, "result": 5})",
         R"({"op": "done", "id": 1, "result": {"tagged": 5}})",
         R"({"op": "done", "id": 1, "result": {"tagged": {"__type__": "x"}, "text": ""}})",
         R"({"op": "done", "id": 1, "data": 5, "size": 1})",
         R"({"op": "done", "id": 1, "data": "Zg=", "size": 1})",
         R"({"op": "done", "id": 1, "data": "Zg=="})",
         R"({"op": "done", "id": 1, "data": "Zg==", "size": -1})",
         R"({"op": "done", "id": 1, "exit": 0})",
         R"({"op": "done", "id": 1, "exit": {"status": 256, "signal": 0}})",
         R"({"op": "done", "id": 1, "exit": {"status": 0}})",
         R"({"op": "call", "id": 1, "call": 1, "tool": "t"})",
         R"({"op": "call", "id": 1, "call": 1, "tool": "t", "arguments": []})",
         R"({"op": "call", "id": 1, "call": "1", "tool": "t", "arguments": {}})",
         R"({"op": "call", "id": 1, "call": 1, "tool": "t", "arguments": {"x": {"__type__": 0}}})",
         R"({"op": "done", "id": 1, "result": {"tagged": "\ud800", "text": ""}})",
       }) {
    INFO(text);
    auto m = worker::parse(text);
    REQUIRE(!m);
    CHECK(m.error().code == errc::corrupt);
  }
}

TEST_CASE("a value at the depth limit passes the frame's own limit too", "[protocol]") {
  std::string value = "1";
  for (int i = 0; i < 32; ++i)
    value = R"({"__type__": "dict", "data": [[1, )" + value + "]]}";
  auto reply = R"({"op": "done", "id": 1, "result": {"text": "", "tagged": )" + value + "}}";
  CHECK(worker::parse(reply));
}

TEST_CASE("a command is checked before it is sent", "[protocol]") {
  auto refused = [](shell_command command) {
    auto checked = check_command(command, {});
    REQUIRE(!checked);
    CHECK(checked.error().code == errc::invalid_argument);
  };
  CHECK(check_command({.argv = {"ls", "-l"}, .cwd = "a/b"}, {}));
  refused({});
  refused({.argv = {""}});
  refused({.argv = {"echo", std::string("a\0b", 3)}});
  refused({.argv = {"echo", "\xff"}});
  refused({.argv = {"echo", std::string(65u << 10, 'x')}});
  refused({.argv = std::vector<std::string>(40, std::string(32u << 10, 'x'))});
  refused({.argv = {"cat"}, .stdin_text = "\xff"});
  refused({.argv = {"cat"}, .stdin_text = std::string(65u << 20, 'x')});
  for (auto* path : {"/tmp", "..", "a/../..", "./a", "a//b", "a/"})
    refused({.argv = {"ls"}, .cwd = path});
}

TEST_CASE("a spec is checked before anything is started for it", "[protocol]") {
  const std::vector<std::string> profiles{"default", "tight"};
  CHECK(check_spec({}, profiles));
  auto refused = [&](auto change) {
    sandbox_spec spec;
    change(spec);
    auto checked = check_spec(spec, profiles);
    REQUIRE(!checked);
    CHECK(checked.error().code == errc::invalid_argument);
    return checked.error().detail;
  };
  CHECK(refused([](auto& s) { s.limits.open_files = 3; }).find("open_files") != std::string::npos);
  CHECK(refused([](auto& s) { s.limits.frame_bytes = 10; }).find("frame_bytes")
        != std::string::npos);
  CHECK(refused([](auto& s) { s.limits.open_timeout = millis{-1}; }).find("open_timeout")
        != std::string::npos);
  CHECK(refused([](auto& s) { s.profile = "numpy"; }).find("'numpy'") != std::string::npos);
  CHECK(refused([](auto& s) { s.tools.emplace_back(); }).find("tool ''") != std::string::npos);
  CHECK(refused([](auto& s) {
          s.files = {{"big", std::string(65u << 20, 'x')}};
        }).find("work_bytes")
        != std::string::npos);
  CHECK(refused([](auto& s) {
          s.files = {{std::string("a\0b", 3), ""}};
        }).find("/work")
        != std::string::npos);
}
