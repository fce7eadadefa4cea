#include "runtime/model/transcript.hpp"

#include <catch2/catch_test_macros.hpp>

#include <thread>

using namespace troupe;

namespace {

int encoded = 0;

encoder_state plain(std::string& out, const chat_message& message, encoder_state before) {
  ++encoded;
  out += (before == 0 ? "<" : ",<") + message.content + '>';
  return 1;
}

chat_message user(std::string text) {
  return {.from = role::user, .content = std::move(text)};
}

}  // namespace

TEST_CASE("each message is encoded once, however often the conversation is viewed",
          "[transcript]") {
  encoded = 0;
  transcript t{plain};
  std::vector<transcript_view> views;
  for (int i = 0; i < 500; ++i) {
    t.append(user(std::to_string(i)));
    views.push_back(t.view());
  }
  CHECK(encoded == 500);
  CHECK(views[0].text() == "<0>");
  CHECK(views[2].text() == "<0>,<1>,<2>");
  CHECK(t.message(0) == "<0>");
  CHECK(t.message(499) == "<499>");
}

TEST_CASE("an empty conversation has an empty view", "[transcript]") {
  transcript t{plain};
  CHECK(t.size() == 0);
  CHECK(t.bytes() == 0);
  CHECK(t.view().text().empty());
}

TEST_CASE("a view stays as it was while the conversation goes on", "[transcript]") {
  transcript t{plain};
  t.append(user("one"));
  auto early = t.view();
  auto bytes = early.pieces();
  for (int i = 0; i < 100; ++i)
    t.append(user(std::string(1000, 'x')));
  CHECK(early.text() == "<one>");
  CHECK(early.pieces() == bytes);
  CHECK(early.pieces()[0].data() == bytes[0].data());
  CHECK(t.view().text().starts_with("<one>,<xxx"));
}

TEST_CASE("what was written never moves, and little room is held in advance", "[transcript]") {
  transcript t{plain};
  t.append(user("first"));
  std::vector<const char*> seen;
  for (int i = 0; i < 1000; ++i) {
    t.append(user(std::string(100, 'x')));
    auto pieces = t.view().pieces();
    REQUIRE(pieces.size() >= seen.size());
    for (std::size_t p = 0; p < seen.size(); ++p)
      CHECK(pieces[p].data() == seen[p]);
    seen.clear();
    for (auto p : pieces)
      seen.push_back(p.data());
  }
  // Chunks of 1.4 KB up to 22 KB, then each a sixteenth of what there is:
  // 16 + ln(104 / 22) / ln(17 / 16).
  CHECK(seen.size() < 52);
}

TEST_CASE("the bytes of a view are its messages in order, wherever the chunks end",
          "[transcript]") {
  transcript t{plain};
  std::string all;
  for (int i = 0; i < 400; ++i) {
    auto text = std::string(static_cast<std::size_t>(i * 7 % 900), static_cast<char>('a' + i % 26));
    t.append(user(text));
    all += (i ? ",<" : "<") + text + ">";
    REQUIRE(t.view().text() == all);
    REQUIRE(t.view().size == all.size());
  }
  CHECK(t.message(399) == all.substr(all.rfind(",<") + 1));
}

TEST_CASE("runs that begin alike share the bytes of their beginning", "[transcript]") {
  transcript start{plain};
  start.append(user(std::string(4000, 's')));
  auto a = start, b = start;
  a.append(user("of a"));
  b.append(user("of b"));
  CHECK(a.view().pieces()[0].data() == b.view().pieces()[0].data());
  CHECK(a.view().text().ends_with("s>,<of a>"));
  CHECK(b.view().text().ends_with("s>,<of b>"));
}

TEST_CASE("copies part when one of them appends", "[transcript]") {
  transcript a{plain};
  a.append(user("shared"));
  auto b = a;
  CHECK(a.view().pieces()[0].data() == b.view().pieces()[0].data());
  a.append(user("of a"));
  b.append(user("of b"));
  a.append(user("more of a"));
  CHECK(a.view().text() == "<shared>,<of a>,<more of a>");
  CHECK(b.view().text() == "<shared>,<of b>");
  CHECK(b.message(1) == "<of b>");
}

TEST_CASE("a copy that falls behind never writes over its elder", "[transcript]") {
  transcript a{plain};
  a.append(user(std::string(5000, 's')));
  a.append(user("1"));  // grows: from here on there is room in the block
  auto b = a;
  a.append(user("a"));
  b.append(user("b"));
  auto c = b;
  c.append(user("c"));
  CHECK(a.message(2) == "<a>");
  CHECK(b.message(2) == "<b>");
  CHECK(c.message(2) == "<b>");
  CHECK(c.message(3) == "<c>");
}

TEST_CASE("a view may be read on one thread while another appends", "[transcript]") {
  transcript t{plain};
  t.append(user(std::string(4000, 'x')));
  t.append(user("y"));
  auto view = t.view();
  auto before = std::string{view.text()};
  bool same = true;
  std::thread reader{[view, &before, &same] {
    for (int i = 0; i < 2000; ++i)
      same = same && view.text() == before;
  }};
  for (int i = 0; i < 2000; ++i)
    t.append(user("z"));
  reader.join();
  CHECK(same);
}

TEST_CASE("roles are named as on the wire", "[transcript]") {
  CHECK(to_string(role::system) == "system");
  CHECK(to_string(role::user) == "user");
  CHECK(to_string(role::assistant) == "assistant");
  CHECK(to_string(role::tool) == "tool");
}

TEST_CASE("a conversation with another first message is otherwise the same", "[transcript]") {
  transcript t{plain};
  for (auto* text : {"one", "two", "three"})
    t.append(user(text));
  encoded = 0;
  auto other = t.with_first(user("another first"));
  CHECK(encoded == 1);
  CHECK(other.view().text() == "<another first>,<two>,<three>");
  CHECK(other.size() == 3);
  CHECK(other.message(1) == "<two>");
  other.append(user("four"));
  CHECK(other.message(3) == "<four>");
  CHECK(t.view().text() == "<one>,<two>,<three>");

  transcript alone{plain};
  alone.append(user("one"));
  CHECK(alone.with_first(user("x")).view().text() == "<x>");
}

TEST_CASE("an encoder is told how its last message left off", "[transcript]") {
  transcript t{[](std::string& out, const chat_message&, encoder_state before) {
    out += std::to_string(before);
    return static_cast<encoder_state>(before + 2);
  }};
  t.append(user(""));
  t.append(user(""));
  auto copy = t;
  copy.append(user(""));
  CHECK(copy.view().text() == "024");
  CHECK(copy.view().state == 6);
  CHECK(t.view().state == 4);
}
