#include "runtime/model/codec.hpp"
#include "runtime/model/transcript_rewriter.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

namespace {

chat_message said(role from, std::string text) {
  return {.from = from, .content = std::move(text)};
}

/// A turn that calls a tool, after a system prompt and a task.
transcript one_call(message_encoder encode) {
  transcript t{encode};
  t.append(said(role::system, "be good"));
  t.append({.from = role::user, .content = "task", .images = {"https://e.org/a.png"}});
  t.append(
    {.from = role::assistant, .content = "I look.", .tool_calls = {{"id\"1", "look", "{}"}}});
  t.append({.from = role::tool,
            .content = std::string(100, 'x'),
            .tool_call_id = "id\"1",
            .failed = true});
  return t;
}

std::vector<message_encoder> all_encoders() {
  std::vector<message_encoder> out;
  for (auto wire :
       {wire_format::openai_chat, wire_format::openai_responses, wire_format::anthropic})
    out.push_back(make_codec({.wire = wire})->encoder());
  return out;
}

}  // namespace

TEST_CASE("a rewritten conversation is the one that was never longer, in every wire format",
          "[transcript]") {
  for (auto encode : all_encoders()) {
    auto from = one_call(encode);
    from.append(said(role::assistant, "so"));
    transcript_rewriter copy{from};
    auto plain = true;
    for (std::size_t i = 0; i < from.size(); ++i)
      plain =
        plain
        && (i == 3 ? copy.keep(i, [](auto text) { return "cut \n" + std::to_string(text.size()); })
                   : copy.keep(i));
    REQUIRE(plain);
    auto short_one = transcript{encode};
    short_one.append(said(role::system, "be good"));
    short_one.append({.from = role::user, .content = "task", .images = {"https://e.org/a.png"}});
    short_one.append(
      {.from = role::assistant, .content = "I look.", .tool_calls = {{"id\"1", "look", "{}"}}});
    short_one.append(
      {.from = role::tool, .content = "cut \n100", .tool_call_id = "id\"1", .failed = true});
    short_one.append(said(role::assistant, "so"));
    auto made = copy.take();
    CHECK(made.view().text() == short_one.view().text());
    CHECK(made.view().state == short_one.view().state);
    CHECK(made.size() == 5);
    CHECK(made.from(3) == role::tool);
    made.append(said(role::user, "go on"));
    short_one.append(said(role::user, "go on"));
    CHECK(made.view().text() == short_one.view().text());
    CHECK(made.message(4) == from.message(4));
  }
}

TEST_CASE("messages that are left out leave no gap, and what does not fit is said",
          "[transcript]") {
  for (auto encode : all_encoders()) {
    auto from = one_call(encode);
    from.append(said(role::assistant, "so"));
    transcript_rewriter copy{from};
    REQUIRE(copy.keep(0));
    REQUIRE(copy.keep(1));
    copy.append(said(role::user, "a summary"));
    REQUIRE(copy.keep(4));
    auto expected = transcript{encode};
    expected.append(said(role::system, "be good"));
    expected.append({.from = role::user, .content = "task", .images = {"https://e.org/a.png"}});
    expected.append(said(role::user, "a summary"));
    expected.append(said(role::assistant, "so"));
    CHECK(copy.take().view().text() == expected.view().text());
  }
  auto from = one_call(make_codec({.wire = wire_format::anthropic})->encoder());
  from.append(said(role::assistant, "so"));
  transcript_rewriter copy{from};
  REQUIRE(copy.keep(0));
  CHECK(!copy.keep(4));  // it ends a user's turn that is not there
  CHECK(copy.size() == 1);
}
