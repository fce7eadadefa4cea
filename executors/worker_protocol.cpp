#include "executors/worker_protocol.hpp"

#include "executors/frame_splitter.hpp"
#include "runtime/core/base64.hpp"
#include "runtime/core/json_tokens.hpp"
#include "runtime/core/text.hpp"

#include <algorithm>
#include <charconv>

namespace troupe::worker {
namespace {

constexpr std::size_t max_error_bytes = 32u << 10;

// A value's level takes at most three of JSON's: {"data": [[key, value]]}.
constexpr unsigned levels_per_value = 3;

json_limits frame_limits() {
  return {static_cast<std::size_t>(-1), value_limits{}.max_depth * levels_per_value + 16};
}

std::string frame(const json& body) {
  return make_frame(dump_json(body));
}

ordered_json tool_json(const tool_spec& spec) {
  return {{"name", spec.name},
          {"description", spec.description},
          {"parameters", spec.parameters},
          {"ends_run", spec.ends_run}};
}

// --- reading: each helper returns false when the member is missing or of another type
// ---------------

bool read(const json& from, const char* key, std::string& to, std::size_t max_bytes) {
  auto it = from.find(key);
  if (it == from.end() || !it->is_string())
    return false;
  to = utf8_prefix(it->get_ref<const std::string&>(), max_bytes);
  return true;
}

template <class Number>
bool read(const json& from, const char* key, Number& to) {
  auto it = from.find(key);
  if (it == from.end() || !it->is_number_unsigned())
    return false;
  auto x = it->get<std::uint64_t>();
  to = static_cast<Number>(x);
  return to == x;
}

bool read_end(const json& from, snippet_end& to) {
  auto name = string_or(from, "end", "ok");
  for (auto end : {snippet_end::ok, snippet_end::raised, snippet_end::not_code}) {
    if (name == to_string(end)) {
      to = end;
      return true;
    }
  }
  return false;
}

result<void> read_result(const json& from, done& to) {
  auto it = from.find("result");
  if (it == from.end())
    return {};
  value x;
  if (!it->is_object() || !it->contains("tagged")
      || !read(*it, "text", x.text, value_limits{}.max_text_bytes + 1024))
    return fail(errc::corrupt, "a result of another shape");
  x.tagged = (*it)["tagged"];
  if (auto checked = check_tagged(x.tagged); !checked)
    return checked;
  to.result = std::move(x);
  auto final_it = from.find("final");
  to.is_final = final_it != from.end() && final_it->is_boolean() && final_it->get<bool>();
  return {};
}

bool read_error(const json& from, done& to) {
  auto it = from.find("error");
  if (it == from.end())
    return to.end != snippet_end::raised;
  if (it->is_string())
    return read(from, "error", to.failure, max_error_bytes);
  snippet_error e;
  if (!it->is_object() || !read(*it, "type", e.type, 256)
      || !read(*it, "message", e.message, max_error_bytes) || !read(*it, "line", e.line)
      || !read(*it, "traceback", e.traceback, max_error_bytes))
    return false;
  to.error = std::move(e);
  return true;
}

void set_usage(std::uint64_t cpu_us, std::uint32_t rss_kb, done& to) {
  constexpr std::uint64_t a_year = 365ull * 86'400 * 1'000'000;
  to.cpu = micros{static_cast<std::int64_t>(std::min(cpu_us, a_year))};
  to.max_rss_bytes = std::uint64_t{rss_kb} << 10;
}

bool read_usage(const json& from, done& to) {
  auto it = from.find("usage");
  if (it == from.end())
    return true;
  std::uint32_t rss_kb = 0;
  std::uint64_t cpu_us = 0;
  if (!it->is_object() || !read(*it, "cpu_us", cpu_us) || !read(*it, "rss_kb", rss_kb))
    return false;
  set_usage(cpu_us, rss_kb, to);
  return true;
}

bool read_kind(const json& from, done& to) {
  auto kind = errc_from(string_or(from, "kind", to_string(to.kind)));
  // The others are not the worker's to say.
  if (kind == errc::not_found || kind == errc::denied || kind == errc::over_budget
      || kind == errc::unavailable)
    to.kind = kind;
  return true;
}

bool read_python(const json& from, done& to) {
  auto it = from.find("python");
  if (it == from.end())
    return true;
  interpreter x;
  if (!it->is_object() || !read(*it, "version", x.version, 64) || !read(*it, "path", x.path, 4'096))
    return false;
  to.python = std::move(x);
  return true;
}

bool read_exit(const json& from, done& to) {
  auto it = from.find("exit");
  if (it == from.end())
    return true;
  command_exit x;
  if (!it->is_object() || !read(*it, "status", x.status) || !read(*it, "signal", x.signal))
    return false;
  auto killed = it->find("killed");
  x.killed = killed != it->end() && killed->is_boolean() && killed->get<bool>();
  to.exit = x;
  return true;
}

bool read_data(const json& from, done& to) {
  auto it = from.find("data");
  if (it == from.end())
    return true;
  if (!it->is_string() || !read(from, "size", to.file_bytes))
    return false;
  to.data = decode_base64(it->get_ref<const std::string&>());
  return to.data.has_value();
}

result<message> read_done(const json& body) {
  done d;
  if (!read(body, "id", d.id) || !read_end(body, d.end) || !read_error(body, d)
      || !read_kind(body, d) || !read_exit(body, d) || !read_data(body, d) || !read_usage(body, d)
      || !read_python(body, d))
    return fail(errc::corrupt, "a reply of another shape");
  if (body.contains("unprotected") && !read(body, "unprotected", d.unprotected, 256))
    return fail(errc::corrupt, "a reply of another shape");
  if (auto got = read_result(body, d); !got)
    return fail(got.error());
  return d;
}

result<message> read_call(const json& body) {
  call c;
  auto arguments = body.find("arguments");
  if (!read(body, "id", c.snippet) || !read(body, "call", c.id) || !read(body, "tool", c.tool, 256)
      || arguments == body.end() || !arguments->is_object())
    return fail(errc::corrupt, "a tool call of another shape");
  c.arguments = json::object();
  for (const auto& [name, argument] : arguments->items()) {
    if (auto checked = check_tagged(argument); !checked)
      return fail(checked.error());
    c.arguments[name] = to_plain(argument);
  }
  return c;
}

// --- most replies, without a tree
// -------------------------------------------------------------------------------------

/// A text that is read from its front, in the very bytes that our worker writes.
class expected_text {
public:
  explicit expected_text(std::string_view text) : rest_{text} {}

  bool take(std::string_view literal) {
    auto there = rest_.starts_with(literal);
    if (there)
      rest_.remove_prefix(literal.size());
    return there;
  }

  /// Digits that fit into `to`, without a zero before them.
  template <class Number>
  bool take_number(Number& to) {
    auto [end, failed] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), to);
    auto size = static_cast<std::size_t>(end - rest_.data());
    auto digits = rest_.substr(0, size);
    if (digits.starts_with('-'))
      digits.remove_prefix(1);
    auto whole = failed == std::errc{} && (digits == "0" || !digits.starts_with('0'));
    if (!whole || rest_.starts_with("-0"))
      return false;
    rest_.remove_prefix(size);
    return true;
  }

  /// A short string of ASCII without escapes.
  bool take_string(std::string& to) {
    constexpr std::size_t longest = 4'096;
    if (!rest_.starts_with('"'))
      return false;
    auto end = first_special(rest_, 1);
    if (end > longest || end >= rest_.size() || rest_[end] != '"')
      return false;
    to = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return true;
  }

  [[nodiscard]] bool at_end() const { return rest_.empty(); }

private:
  std::string_view rest_;
};

bool take_scalar(expected_text& from, json& to) {
  std::int64_t number = 0;
  if (std::string text; from.take_string(text))
    to = std::move(text);
  else if (from.take_number(number))
    to = number < 0 ? json(number) : json(static_cast<std::uint64_t>(number));
  else if (from.take("true"))
    to = true;
  else if (from.take("false"))
    to = false;
  else if (!from.take("null"))
    return false;
  return true;
}

/// The reply of a snippet that went well, with a scalar or no result. Nothing: it is of another
/// form, or holds more than is looked at here.
std::optional<done> read_plain_done(std::string_view body) {
  expected_text from{body};
  done d;
  std::uint64_t cpu_us = 0;
  std::uint32_t rss_kb = 0;
  if (!from.take(R"({"end":"ok",)"))
    return std::nullopt;
  if (from.take(R"("result":{"tagged":)")) {
    auto& x = d.result.emplace();
    if (!take_scalar(from, x.tagged) || !from.take(R"(,"text":)") || !from.take_string(x.text)
        || !from.take("},"))
      return std::nullopt;
  }
  auto whole = from.take(R"("op":"done","id":)") && from.take_number(d.id)
               && from.take(R"(,"usage":{"cpu_us":)") && from.take_number(cpu_us)
               && from.take(R"(,"rss_kb":)") && from.take_number(rss_kb) && from.take("}}")
               && from.at_end();
  if (!whole)
    return std::nullopt;
  set_usage(cpu_us, rss_kb, d);
  return d;
}

}  // namespace

std::string init_frame(std::uint32_t id, const sandbox_spec& spec) {
  auto tools = ordered_json::array();
  for (const auto& t : spec.tools)
    tools.push_back(tool_json(t));
  ordered_json body{{"op", "init"},
                    {"id", id},
                    {"tools", std::move(tools)},
                    {"imports", spec.imports},
                    {"frame_bytes", spec.limits.frame_bytes}};
  return make_frame(body.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
}

std::string warm_frame(std::uint32_t id) {
  return frame({{"op", "warm"}, {"id", id}});
}

std::vector<std::string> put_frames(std::uint32_t first_id, const sandbox_file& file) {
  std::vector<std::string> frames;
  std::size_t offset = 0;
  do {
    frames.push_back(put_frame(first_id++, file, offset));
    offset += put_piece_bytes;
  } while (offset < file.bytes.size());
  return frames;
}

std::string put_frame(std::uint32_t id, const sandbox_file& file, std::size_t offset) {
  auto piece = std::string_view{file.bytes}.substr(offset, put_piece_bytes);
  return frame({{"op", "put"},
                {"id", id},
                {"path", file.path},
                {"append", offset > 0},
                {"data", to_base64(piece)}});
}

std::string get_frame(std::uint32_t id, const std::string& path, std::uint64_t offset,
                      std::size_t bytes) {
  return frame({{"op", "get"}, {"id", id}, {"path", path}, {"offset", offset}, {"bytes", bytes}});
}

std::size_t get_piece_bytes(const sandbox_limits& limits) {
  constexpr std::size_t around_the_data = 1'024;
  return std::min(put_piece_bytes, (limits.frame_bytes - around_the_data) / 4 * 3);
}

std::string shell_frame(std::uint32_t id, const shell_command& command) {
  return frame({{"op", "shell"},
                {"id", id},
                {"argv", command.argv},
                {"stdin", command.stdin_text},
                {"cwd", command.cwd}});
}

std::string run_frame(std::uint32_t id, const snippet& code, bool checkpoint) {
  auto body = R"({"op":"run","id":)" + std::to_string(id) + R"(,"code":)";
  append_json_string(body, code.code);
  body += code.may_be_prose ? R"(,"may_be_prose":true)" : R"(,"may_be_prose":false)";
  body += checkpoint ? R"(,"checkpoint":true})" : R"(,"checkpoint":false})";
  return make_frame(body);
}

std::string branch_frame(std::uint32_t id, std::size_t count) {
  return frame({{"op", "branch"}, {"id", id}, {"count", count}});
}

std::string take_frame(std::uint32_t id) {
  return frame({{"op", "take"}, {"id", id}});
}

std::string answer_frame(std::uint64_t call, const result<json>& value) {
  if (!value)
    return frame({{"op", "answer"}, {"call", call}, {"error", value.error().detail}});
  return frame({{"op", "answer"}, {"call", call}, {"value", to_tagged(*value)}});
}

result<message> parse(std::string_view body) {
  if (auto plain = read_plain_done(body))
    return *std::move(plain);
  auto parsed = parse_json(body, frame_limits());
  if (!parsed)
    return fail(parsed.error());
  auto op = string_or(*parsed, "op");
  if (op == "done")
    return read_done(*parsed);
  if (op == "call")
    return read_call(*parsed);
  return fail(errc::corrupt, "an unknown frame");
}

}  // namespace troupe::worker
