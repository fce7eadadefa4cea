#include "runtime/model/reply_reader.hpp"

#include "runtime/core/text.hpp"
#include "runtime/model/chat_text.hpp"
#include "runtime/model/server_error.hpp"

namespace troupe {
namespace {

std::string why_not_json(std::string_view body, const error& e) {
  auto start = trim(body);
  auto shown = ": " + one_line(body, 160);
  if (start.empty())
    return "the reply has no body";
  if (start.front() == '<')
    return "the reply is a web page, not JSON (check the base URL)" + shown;
  if (start.starts_with("data:") || start.starts_with("event:"))
    return "the reply is a stream of events, which was not asked for" + shown;
  auto ends_within = [&](std::string_view what) {
    return e.detail.find(what) != std::string::npos;
  };
  if (start.front() == '{'
      && (ends_within("unexpected end of input") || ends_within("missing closing quote")))
    return "the reply is cut short after " + std::to_string(body.size()) + " bytes" + shown;
  return "the reply is not JSON (" + one_line(e.detail, 120) + ")" + shown;
}

}  // namespace

tl::unexpected<model_failure> bad_reply(std::string detail) {
  model_failure failure;
  failure.kind = failure_class::bad_reply;
  failure.detail = std::move(detail);
  return tl::unexpected<model_failure>(std::move(failure));
}

tl::expected<json, model_failure> read_body(std::string_view body) {
  auto parsed = parse_json(body, reply_limits);
  if (!parsed && !is_utf8(body))
    if (auto mended = parse_json(to_utf8(body), reply_limits))
      parsed = std::move(mended);
  if (!parsed)
    return bad_reply(why_not_json(body, parsed.error()));
  if (is_error(*parsed))
    return tl::unexpected(failure_inside(*parsed, "the server answered 200 with an error"));
  if (!parsed->is_object())
    return bad_reply("the reply is not a JSON object: " + one_line(body, 160));
  return *std::move(parsed);
}

tl::expected<json, model_failure> read_event_data(std::string_view data) {
  auto parsed =
    is_utf8(data) ? parse_json(data, reply_limits) : parse_json(to_utf8(data), reply_limits);
  if (!parsed)
    return bad_reply("an event of the stream is not JSON (" + one_line(parsed.error().detail, 120)
                     + "): " + one_line(data, 160));
  if (is_error(*parsed))
    return tl::unexpected(failure_inside(*parsed, "the server broke off with an error"));
  if (!parsed->is_object())
    return bad_reply("an event of the stream is not a JSON object: " + one_line(data, 160));
  return *std::move(parsed);
}

const json& member(const json& object, std::string_view name) {
  static const json none;
  if (!object.is_object())
    return none;
  auto it = object.find(name);
  return it == object.end() ? none : *it;
}

std::uint64_t count_of(const json& number) {
  return number.is_number() ? count_of(number.get<double>()) : 0;
}

std::uint64_t count_of(double number) {
  constexpr double most_believed = 1e9;
  return number > 0 && number <= most_believed ? static_cast<std::uint64_t>(number) : 0;
}

std::string text_of(const json& content) {
  if (content.is_string())
    return content.get<std::string>();
  std::string out;
  if (content.is_array())
    for (auto& part : content)
      out += part.is_string() ? part.get<std::string>() : string_or(part, "text");
  return out;
}

std::string arguments_text(const json& arguments) {
  if (arguments.is_string() && !arguments.get_ref<const std::string&>().empty())
    return arguments.get<std::string>();
  if (arguments.is_object())
    return dump_json(arguments);
  return "{}";
}

std::string call_id_or_position(std::string id, std::size_t position) {
  return id.empty() ? "call_" + std::to_string(position) : std::move(id);
}

}  // namespace troupe
