#include "runtime/agent/code_parser.hpp"
#include "runtime/agent/fences.hpp"

#include <catch2/catch_test_macros.hpp>

#include <chrono>

using namespace troupe;

namespace {

parsed_reply parse(std::string_view text) {
  return parse_reply(text, {});
}

}  // namespace

// The cases of facts about smolagents' parse_code_blobs, its mistakes mended.

TEST_CASE("two code blocks with prose between are joined by a blank line, in order", "[parser]") {
  auto p = parse("Thought: a\n<code>\n x = 1 \n</code>\nand then\n<code>\nprint(x)\n</code>");
  CHECK(p.source == code_source::tags);
  CHECK(p.code == "x = 1\n\nprint(x)");
  CHECK(!p.cut);
}

TEST_CASE("generation that stopped at the closing tag is complete, and memory gets the tag",
          "[parser]") {
  auto p = parse("Thought: a\n<code>\nprint(1)\n");
  CHECK(p.source == code_source::tags);
  CHECK(p.code == "print(1)");
  CHECK(p.cut);
  CHECK(p.message == "Thought: a\n<code>\nprint(1)\n</code>");
}

TEST_CASE("spaces after the opening tag are ignored", "[parser]") {
  CHECK(parse("<code>   x = 1\ny = 2</code>").code == "x = 1\ny = 2");
  CHECK(parse("<code>  \n\n  x = 1\n  if x:\n    y = 2\n</code>").code == "x = 1\nif x:\n  y = 2");
}

TEST_CASE("python fences are accepted when there are no tags, and the message is left alone",
          "[parser]") {
  for (auto label : {"python", "py", "Python", "python3"}) {
    auto text = "So:\n```" + std::string{label} + "\nprint(1)\n```\nbye";
    auto p = parse(text);
    CHECK(p.source == code_source::fence);
    CHECK(p.code == "print(1)");
    CHECK(p.message == text);
  }
  CHECK(parse("```py\na=1\n```\nthen\n```python\nb=2\n```").code == "a=1\n\nb=2");
  CHECK(parse("```py\ns = '''\n```\n'''\n```\n").code == "s = '''\n```\n'''");
}

TEST_CASE("a fence without a label is the last resort, one of another language is none",
          "[parser]") {
  CHECK(parse("```\nx = 1\n```\n").code == "x = 1");
  CHECK(parse("```\nnot this\n```\n```python\nx = 1\n```").code == "x = 1");
  CHECK(parse("```json\n{}\n```").source == code_source::bare);
}

TEST_CASE("a reply without tags and fences is bare code or prose, as it stands", "[parser]") {
  auto p = parse("  final_answer(8)\n");
  CHECK(p.source == code_source::bare);
  CHECK(p.code == "final_answer(8)");
  CHECK(p.message == "final_answer(8)");
  CHECK(parse(" \n ").source == code_source::none);
  CHECK(parse("<code>\n</code>").source == code_source::none);
}

TEST_CASE("the format error shows the tags, and how to answer when an answer was meant",
          "[parser]") {
  auto plain = format_error(parse("I will look it up."), {});
  CHECK(plain.find("<code>\n") != std::string::npos);
  CHECK(plain.find("final_answer(") == std::string::npos);
  auto hinted = format_error(parse("The Final answer is 5."), {"[[", "]]"});
  CHECK(hinted.find("[[\nfinal_answer(") != std::string::npos);
  CHECK(format_error(parse("<think>hm"), {}).find("think block") != std::string::npos);
}

TEST_CASE("a think block is ignored with the code in it", "[parser]") {
  for (std::string t : {"think", "thinking", "reasoning"}) {
    auto p = parse("<" + t + ">try <code>bad()</code> and\n```py\nbad()\n```</" + t
                   + ">\n<code>good()</code>");
    CHECK(p.code == "good()");
    CHECK(p.message == "<code>good()</code>");
  }
  CHECK(parse("<think>a</think>x = 1").code == "x = 1");
}

TEST_CASE("a thought whose opening tag was in the prompt ends at its closing tag", "[parser]") {
  CHECK(parse("maybe <code>bad()</code> no\n</think>\n<code>good()</code>").code == "good()");
  CHECK(parse("maybe <code>bad()\n no </think>\n<code>good()</code>").code == "good()");
}

TEST_CASE("a thought that never ends runs nothing", "[parser]") {
  auto p = parse("<think>first\n<code>bad()</code>");
  CHECK(p.source == code_source::none);
  CHECK(p.in_thought);
}

TEST_CASE("think tags inside code are code", "[parser]") {
  CHECK(parse("<code>print('<think>', \"</think>\")</code>").code
        == "print('<think>', \"</think>\")");
  CHECK(parse("```python\nprint('<think>')\n```").code == "print('<think>')");
}

TEST_CASE("a fence inside the tags is unwrapped", "[parser]") {
  CHECK(parse("<code>\n```python\nprint(1)\n```\n</code>").code == "print(1)");
  CHECK(parse("<code>```py\nprint(1)\n```</code>").code == "print(1)");
  CHECK(parse("<code>\n```\nprint(1)\n```\n</code>").code == "print(1)");
  CHECK(parse("<code>\n```python\nprint(1)\n").code == "print(1)");
  CHECK(parse("```\n<code>\nprint(1)\n</code>\n```").code == "print(1)");
}

TEST_CASE("a closing tag inside a Python string does not end the code", "[parser]") {
  for (std::string code :
       {R"(s = "a</code>b")", R"(s = 'a</code>b'; t = "it's </code>")", "s = '''\n</code>\n'''",
        R"(s = """it's "quoted" </code>""")", R"(s = "a\"</code>")", R"(s = r"\"</code>")",
        R"(s = f'{x}</code>')", "s = 'a\\\n</code>'", "# it's a comment\ns = '</code>'"}) {
    CAPTURE(code);
    CHECK(parse("<code>\n" + code + "\nprint(s)\n</code> done").code == code + "\nprint(s)");
  }
}

TEST_CASE("an unterminated string falls back to the first closing tag", "[parser]") {
  CHECK(parse("<code>print(\"hello</code> it's").code == "print(\"hello");
  CHECK(parse("<code>s = '''never closed</code>\nbye").code == "s = '''never closed");
  CHECK(parse("<code>x = 1  # don't</code>\n'''").code == "x = 1  # don't");
  CHECK(parse("<code>don't</code><code>y = 2</code>").code == "don't\n\ny = 2");
}

TEST_CASE("tags are literal text, also those that look like patterns", "[parser]") {
  CHECK(parse_reply("a [c] x = 1 [/c] b", {"[c]", "[/c]"}).code == "x = 1");
  CHECK(parse_reply("(.*)x = 1(.*)", {"(.*)", "(.*)"}).code == "x = 1");
  auto fence = parse_reply("```python\nprint('a```b')\n```", {"```python", "```"});
  CHECK(fence.code == "print('a```b')");
  CHECK(parse_reply("```python\nx = 1", {"```python", "```"}).message == "```python\nx = 1\n```");
}

TEST_CASE("a tag in backticks is only talked about", "[parser]") {
  CHECK(parse("I put it in `<code>` tags:\n<code>x = 1</code>").code == "x = 1");
}

TEST_CASE("an observation that the model made up after its code is cut off", "[parser]") {
  auto p = parse("<code>\nx = 1\n</code>\nObservation: 1\n<code>\nfinal_answer(1)\n</code>");
  CHECK(p.code == "x = 1");
  CHECK(p.message == "<code>\nx = 1\n</code>");
  CHECK(parse("<code>\ns = '''\nObservation: 1\n'''\n</code>").code
        == "s = '''\nObservation: 1\n'''");
}

TEST_CASE("a forced answer is read without its thoughts and with everything else", "[parser]") {
  CHECK(without_thoughts("<think>hm</think>\n 42 \n") == "42");
  CHECK(without_thoughts("use <code>x</code>") == "use <code>x</code>");
}

TEST_CASE("hostile replies of a megabyte are read in linear time", "[parser]") {
  auto many = [](std::string_view piece) {
    std::string text;
    while (text.size() < 1u << 20)
      text += piece;
    return text;
  };
  for (std::string_view piece :
       {"\\'", "\"'", "'''\"\"\"", "<code>", "<think>", "</think>", "```\n", "`", "a", "#'\n",
        "\"\"\"\\", "<code>'</code>", " ```", "\n"}) {
    auto began = std::chrono::steady_clock::now();
    auto p = parse("<code>" + many(piece));
    auto q = parse(many(piece));
    CAPTURE(piece, p.code.size(), q.code.size());
    CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds{30});  // quadratic: hours
  }
}

TEST_CASE("bytes that are not UTF-8 pass through", "[parser]") {
  CHECK(parse("<code>x = '\xFF\xC3'</code>").code == "x = '\xFF\xC3'");
}

TEST_CASE("a block loses only the indentation that all its lines share", "[parser]") {
  CHECK(tidy_block("\n    a\n\n      b\n    c\n") == "a\n\n  b\nc");
  CHECK(tidy_block("\n    a\n  b\n") == "a\n  b");
  CHECK(tidy_block("") == "");
}
