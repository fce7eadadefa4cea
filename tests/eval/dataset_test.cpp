#include "runtime/eval/dataset.hpp"

#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

using namespace troupe;
namespace fs = std::filesystem;

namespace {

result<dataset> lines(std::string_view text, const dataset_options& options = {}) {
  return parse_dataset(text, "d.jsonl", "", options);
}

std::string refusal(std::string_view text, const dataset_options& options = {},
                    const std::string& name = "d.jsonl") {
  auto r = parse_dataset(text, name, "", options);
  return r ? "accepted" : r.error().detail;
}

constexpr std::string_view skip_hint = "; --skip-bad-lines goes on without such lines";

std::string with_hint(std::string message) {
  return message + std::string{skip_hint};
}

class temp_folder {
public:
  temp_folder() {
    auto name = (fs::temp_directory_path() / "troupe_dataset_XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~temp_folder() { fs::remove_all(path); }
  std::string write(const std::string& name, std::string_view text) const {
    std::ofstream{path / name, std::ios::binary} << text;
    return (path / name).string();
  }
  fs::path path;
};

}  // namespace

TEST_CASE("a sample's fields are read in all their forms", "[dataset]") {
  auto d = lines(
    R"({"input":"q1","target":42,"id":"a","metadata":{"k":1},"files":{"x/y.txt":"hi","z":"data:text/plain;base64,aGk="}})"
    "\n"
    R"({"input":"q2","target":["x",1.5,true],"id":7,"choices":["p","q"]})"
    "\n"
    R"({"input":"q3"})");
  REQUIRE(d);
  REQUIRE(d->samples.size() == 3);
  const auto& a = d->samples[0];
  CHECK(a.id == "a");
  CHECK(a.input == "q1");
  CHECK(a.targets == std::vector<std::string>{"42"});
  CHECK(a.metadata == json{{"k", 1}});
  REQUIRE(a.files.size() == 2);
  CHECK(a.files[0].path == "x/y.txt");
  CHECK(*a.files[0].bytes == "hi");
  CHECK(*a.files[1].bytes == "hi");
  CHECK(d->samples[1].id == "7");
  CHECK(d->samples[1].targets == std::vector<std::string>{"x", "1.5", "True"});
  CHECK(d->samples[1].metadata == json{{"choices", {"p", "q"}}});
  CHECK(d->samples[2].id == "3");
  CHECK(d->samples[2].targets.empty());
  CHECK(d->samples[2].line == 3);
}

TEST_CASE("a chat's last user message is the task, the rest its history", "[dataset]") {
  auto d = lines(
    R"({"input":[{"role":"system","content":"s"},{"role":"user","content":"u"},{"role":"assistant","content":"a"},{"role":"user","content":[{"type":"text","text":"go"}]}]})");
  REQUIRE(d);
  CHECK(d->samples[0].input == "go");
  REQUIRE(d->samples[0].history.size() == 3);
  CHECK(d->samples[0].history[0] == chat_message{role::system, "s", {}, {}});
  CHECK(d->samples[0].history[2].from == role::assistant);
  CHECK(refusal(R"({"input":[{"role":"assistant","content":"a"}]})")
          .find("last message to be the user's")
        != std::string::npos);
  CHECK(refusal(R"({"input":[{"role":"robot","content":"a"}]})").find("message 1: expected role")
        != std::string::npos);
}

TEST_CASE("field names are mapped, and a missing field lists what is there", "[dataset]") {
  dataset_options options;
  options.fields = {{"input", "question"}, {"target", "answer"}};
  auto d = lines(R"({"question":"q","answer":"a","input":"other"})", options);
  REQUIRE(d);
  CHECK(d->samples[0].input == "q");
  CHECK(d->samples[0].targets == std::vector<std::string>{"a"});
  CHECK(
    refusal(R"({"questoin":"q","answer":"a"})", options)
    == with_hint("d.jsonl, line 1, column 1: expected a field 'question', got answer, questoin "
                 "(did you mean 'questoin'?); another name is mapped with --fields input=NAME"));
  options.fields = {{"imput", "x"}};
  CHECK(refusal("{}", options).find("did you mean 'input'?") != std::string::npos);
}

TEST_CASE("a broken line names file, line, column and what was expected", "[dataset]") {
  auto message = refusal("{\"input\":\"a\"}\n{\"input\": \"b\",}\n");
  CHECK(message.starts_with("d.jsonl, line 2, column 15: "));
  CHECK(message.find("expected") != std::string::npos);
  CHECK(refusal("{\"input\":\"a\"}\n[1]\n")
        == with_hint("d.jsonl, line 2, column 1: expected an object, got a list"));
  CHECK(
    refusal(R"({"metadata": {"input": 1}, "input": 5})")
    == with_hint("d.jsonl, line 1, column 37: 'input': expected a text or a list of messages, got "
                 "a number"));
  CHECK(refusal(R"({"input":"a", "target": {"x":1}})")
          .starts_with("d.jsonl, line 1, column 25: 'target'"));
  CHECK(refusal(R"({"input":"a", "id": "x\u0000y"})").find("no control characters")
        != std::string::npos);
  CHECK(refusal(R"({"input":"a", "id": 1.5})").starts_with("d.jsonl, line 1, column 21: 'id'"));
  CHECK(refusal(R"({"input":"  "})").find("got blank text") != std::string::npos);
}

TEST_CASE("a line that is not UTF-8 is a bad line, with its column", "[dataset]") {
  CHECK(refusal("{\"input\":\"a\"}\n{\"input\":\"b\xFF\"}\n")
        == with_hint("d.jsonl, line 2, column 12: expected UTF-8, got a byte that is not"));
  CHECK(refusal("{\"input\":\"\xE2\x82\xAC \x80\"}").find("column 15:") != std::string::npos);
}

TEST_CASE("bad lines can be skipped: they are counted and the first messages kept", "[dataset]") {
  std::string text;
  for (int i = 0; i < 30; ++i)
    text += fmt::format("{{\"input\":\"good {}\"}}\nbad {}\n", i, i);
  dataset_options options;
  options.skip_bad_lines = true;
  options.shown_bad_lines = 3;
  auto d = lines(text, options);
  REQUIRE(d);
  CHECK(d->samples.size() == 30);
  CHECK(d->bad_lines == 30);
  REQUIRE(d->bad_messages.size() == 3);
  CHECK(d->bad_messages[1].starts_with("d.jsonl, line 4, column 1: "));
}

TEST_CASE("equal ids name both lines", "[dataset]") {
  auto text = "{\"input\":\"a\",\"id\":\"x\"}\n\n{\"input\":\"b\",\"id\":\"x\"}\n";
  CHECK(
    refusal(text)
    == with_hint("d.jsonl, line 3, column 1: expected a new id, got 'x' again, the id of line 1"));
  CHECK(refusal("{\"input\":\"a\",\"id\":2}\n{\"input\":\"b\"}\n").find("the id of line 1")
        != std::string::npos);
  dataset_options options;
  options.skip_bad_lines = true;
  CHECK(lines(text, options)->samples.size() == 1);
}

TEST_CASE("a dataset without samples is an error, skipped lines or not", "[dataset]") {
  CHECK(refusal("") == "d.jsonl: has no samples");
  CHECK(refusal("\n\r\n  \n") == "d.jsonl: has no samples");
  dataset_options options;
  options.skip_bad_lines = true;
  CHECK(refusal("x\ny\n", options)
          .starts_with("d.jsonl: none of its 2 samples can be used; the first: "));
}

TEST_CASE("a byte order mark and CRLF are tolerated", "[dataset]") {
  auto d = lines("\xEF\xBB\xBF{\"input\":\"a\"}\r\n{\"input\":\"b\"}\r\n");
  REQUIRE(d);
  CHECK(d->samples.size() == 2);
}

TEST_CASE("the limit stops the reading", "[dataset]") {
  dataset_options options;
  options.limit = 1;
  auto d = lines("{\"input\":\"a\"}\nbroken\n", options);
  REQUIRE(d);
  CHECK(d->samples.size() == 1);
}

TEST_CASE("a JSON array is read like lines, with places inside the file", "[dataset]") {
  auto d =
    parse_dataset("[\n  {\"input\": \"a, ]}\"},\n  {\n \"input\": \"b\"}\n]\n", "d.json", "");
  REQUIRE(d);
  REQUIRE(d->samples.size() == 2);
  CHECK(d->samples[0].input == "a, ]}");
  CHECK(d->samples[1].id == "2");
  CHECK(d->samples[1].line == 3);
  CHECK(refusal("[\n  {\"input\": \"a\"},\n  {\"input\": 5}]", {}, "d.json")
          .starts_with("d.json, line 3, column 13: 'input'"));
  CHECK(refusal("[\n  {\"input\": \"a\"},\n  {\"input\": tru}]", {}, "d.json")
          .starts_with("d.json, line 3, column 16: "));
  CHECK(refusal("{\"input\": \"a\"}", {}, "d.json")
          .starts_with("d.json, line 1, column 1: expected '['"));
  CHECK(refusal("[{\"input\": \"a\"}", {}, "d.json").find("']' after the object")
        != std::string::npos);
  CHECK(refusal("[] x", {}, "d.json").find("nothing after the array") != std::string::npos);
}

TEST_CASE("CSV is read by its header, quotes and line ends inside cells included", "[dataset]") {
  dataset_options options;
  options.fields = {{"input", "question"}};
  auto d = parse_dataset(
    "question,target,metadata\r\n\"a \"\"b\"\",\nc\",7,\"{\"\"k\"\": [1]}\"\r\nd,,\r\n", "d.csv",
    "", options);
  REQUIRE(d);
  REQUIRE(d->samples.size() == 2);
  CHECK(d->samples[0].input == "a \"b\",\nc");
  CHECK(d->samples[0].targets == std::vector<std::string>{"7"});
  CHECK(d->samples[0].metadata == json{{"k", {1}}});
  CHECK(d->samples[1].targets.empty());
  CHECK(d->samples[1].line == 4);
  CHECK(refusal("input,target\na\n", {}, "d.csv")
          .starts_with("d.csv, line 2, column 1: expected 2 cells as in the header, got 1"));
  CHECK(refusal("input\n\"a\n", {}, "d.csv")
        == "d.csv, line 2, column 1: this quote is never closed");
}

TEST_CASE("images are files beside the dataset, data URLs or addresses", "[dataset]") {
  temp_folder dir;
  dir.write("a.png", "\x89PNG\r\n\x1A\n");
  dir.write("b.txt", "text");
  auto read = [&](const std::string& images) {
    return read_dataset(dir.write("d.jsonl", R"({"input":"a","images":)" + images + "}\n"));
  };
  auto d = read(R"(["a.png","data:image/gif;base64,R0k=","https://e.org/x.jpg"])");
  REQUIRE(d);
  CHECK(d->samples[0].images
        == std::vector<std::string>{"data:image/png;base64,iVBORw0KGgo=",
                                    "data:image/gif;base64,R0k=", "https://e.org/x.jpg"});
  CHECK(read("\"a.png\"")->samples[0].images.size() == 1);
  struct row {
    const char* images;
    const char* says;
  };
  for (auto [images, says] :
       {row{"[\"b.txt\"]", "'images': 'b.txt' is no image"}, row{"[\"../a.png\"]", "beside"},
        row{"[\"c.png\"]", "c.png"}, row{"[3]", "got a number"},
        row{"[\"data:text/plain;base64,AA==\"]", "expected data:image/"}}) {
    auto refused = read(images);
    REQUIRE(!refused);
    CHECK(refused.error().detail.find(says) != std::string::npos);
  }
}

TEST_CASE("files beside the dataset are read once, others are refused", "[dataset]") {
  temp_folder dir;
  dir.write("table.csv", "1,2\n");
  auto path = dir.write("d.jsonl", R"({"input":"a","files":{"in.csv":{"file":"table.csv"}}})"
                                   "\n"
                                   R"({"input":"b","files":{"in.csv":{"file":"table.csv"}}})");
  auto d = read_dataset(path);
  REQUIRE(d);
  CHECK(*d->samples[0].files[0].bytes == "1,2\n");
  CHECK(d->samples[0].files[0].bytes == d->samples[1].files[0].bytes);
  auto with_file = [&](std::string_view name) {
    auto r = read_dataset(dir.write(
      "e.jsonl", fmt::format(R"({{"input":"a","files":{{"x":{{"file":"{}"}}}}}})", name)));
    return r ? "accepted" : r.error().detail;
  };
  CHECK(with_file("nothing.csv").find("No such file") != std::string::npos);
  CHECK(with_file("../etc/passwd").find("beside the dataset") != std::string::npos);
  CHECK(with_file("/etc/passwd").find("beside the dataset") != std::string::npos);
  fs::create_symlink("/etc/passwd", dir.path / "link");
  CHECK(with_file("link").find("beside the dataset") != std::string::npos);
  REQUIRE(::mkfifo((dir.path / "pipe").c_str(), 0600) == 0);
  CHECK(with_file("pipe").find("is not a plain file") != std::string::npos);
  CHECK(refusal(R"({"input":"a","files":{"../x":"t"}})").find("without '..'") != std::string::npos);
  CHECK(refusal(R"({"input":"a","files":{"/x":"t"}})").find("relative path") != std::string::npos);
  CHECK(refusal(R"({"input":"a","files":{"x":"data:a;base64,!"}})").find("expected base64")
        != std::string::npos);
}

TEST_CASE("a missing, unreadable or wrong file is named", "[dataset]") {
  temp_folder dir;
  auto missing = read_dataset((dir.path / "no.jsonl").string());
  REQUIRE(!missing);
  CHECK(missing.error().code == errc::not_found);
  CHECK(missing.error().detail == (dir.path / "no.jsonl").string() + ": No such file or directory");
  auto folder = read_dataset(dir.path.string());
  REQUIRE(!folder);
  CHECK(folder.error().detail == dir.path.string() + ": is a folder, not a file");
  auto path = dir.write("d.jsonl", "{\"input\":\"a\"}\n");
  // Source: sha256sum of the same bytes.
  CHECK(read_dataset(path)->sha256
        == "a43d77ea4404bc6a822f34cd192ca2d0ec0f6b873b6e6ee0d134c812e7e0d5eb");
  if (::geteuid() != 0) {
    fs::permissions(path, fs::perms::none);
    CHECK(read_dataset(path).error().code == errc::denied);
  }
}

TEST_CASE("one hundred thousand lines, seconds", "[.bench]") {
  std::string text;
  for (int i = 0; i < 100'000; ++i)
    text += fmt::format(R"({{"id":"q{0}","input":"What is {0} plus {0}? {1:x<300}","target":{2}}})"
                        "\n",
                        i, "", 2 * i);
  auto began = std::chrono::steady_clock::now();
  auto d = lines(text);
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  REQUIRE(d);
  CHECK(d->samples.size() == 100'000);
  fmt::print("dataset: 100000 lines, {} MB, {:.2f} s\n", text.size() / 1'000'000, took.count());
}
