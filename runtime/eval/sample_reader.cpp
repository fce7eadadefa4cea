#include "runtime/eval/sample_reader.hpp"

#include "runtime/core/text.hpp"
#include "runtime/eval/data_uri.hpp"
#include "runtime/eval/image_source.hpp"
#include "runtime/eval/read_file.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <optional>

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_record_bytes = 64u << 20;
constexpr std::size_t max_file_bytes = 64u << 20;

std::string_view kind_of(const json& x) {
  switch (x.type()) {
  case json::value_t::null:
    return "null";
  case json::value_t::object:
    return "an object";
  case json::value_t::array:
    return "a list";
  case json::value_t::string:
    return "a text";
  case json::value_t::boolean:
    return "a boolean";
  default:
    return "a number";
  }
}

/// A target as the agent's Python would print it.
std::optional<std::string> scalar_text(const json& x) {
  if (x.is_string())
    return x.get<std::string>();
  if (x.is_boolean())
    return x.get<bool>() ? "True" : "False";
  if (x.is_number())
    return x.dump();
  return std::nullopt;
}

/// A message's content: a text, or a list of text parts.
std::optional<std::string> content_text(const json& content) {
  if (content.is_string())
    return content.get<std::string>();
  if (!content.is_array() || content.empty())
    return std::nullopt;
  std::string text;
  for (const auto& part : content) {
    if (string_or(part, "type") != "text" || !part.contains("text") || !part["text"].is_string())
      return std::nullopt;
    text += part["text"].get_ref<const std::string&>();
  }
  return text;
}

std::optional<role> role_from(const std::string& name) {
  if (name == "system" || name == "developer")
    return role::system;
  if (name == "user")
    return role::user;
  if (name == "assistant")
    return role::assistant;
  return std::nullopt;
}

/// True for a relative name that stays where it is put.
bool stays_inside(const std::string& name) {
  fs::path path{name};
  if (name.empty() || name.size() > 4096 || path.is_absolute() || name.ends_with('/')
      || name.find('\0') != std::string::npos)
    return false;
  for (const auto& part : path)
    if (part == ".." || part.native().size() > 255)
      return false;
  return true;
}

std::vector<std::string_view> keys_of(const json& row) {
  std::vector<std::string_view> keys;
  for (const auto& [key, value] : row.items())
    keys.push_back(row.find(key).key());
  return keys;
}

/// parse_json's "line 1, column 5: ..." moved to where the record begins.
std::string moved(const std::string& detail, const record& from) {
  std::size_t line = 0, column = 0;
  int used = 0;
  if (std::sscanf(detail.c_str(), "line %zu, column %zu%n", &line, &column, &used) != 2)
    return to_string(from.begin) + ": " + detail;
  text_place place{from.begin.line + line - 1, line == 1 ? from.begin.column + column - 1 : column};
  return to_string(place) + detail.substr(static_cast<std::size_t>(used));
}

std::size_t first_bad_byte(std::string_view text) {
  std::size_t good = 0, bad = text.size();
  while (good + 1 < bad) {  // longest prefix that is well-formed, whole sequences only
    auto middle = good + (bad - good) / 2;
    auto cut = utf8_prefix(text, middle).size();
    if (cut <= good)
      cut = middle;
    if (is_utf8(text.substr(0, cut)))
      good = cut;
    else
      bad = cut;
  }
  return good;
}

}  // namespace

sample_reader::sample_reader(std::map<std::string, std::string> fields, std::string folder)
  : fields_{std::move(fields)}, folder_{std::move(folder)} {
  for (auto ours : {"input", "target", "id", "metadata", "files", "images", "choices"})
    fields_.try_emplace(ours, ours);
}

const std::string& sample_reader::name_of(const std::string& field) const {
  return fields_.at(field);
}

const json* sample_reader::find(const json& row, const std::string& field) const {
  auto it = row.find(name_of(field));
  return it == row.end() || it->is_null() ? nullptr : &*it;
}

result<sample> sample_reader::read(const record& from) {
  auto refuse = [&](text_place where, const std::string& what) -> result<sample> {
    return fail(errc::corrupt, to_string(where) + ": " + what);
  };
  if (!from.broken.empty())
    return refuse(from.begin, from.broken);
  if (!is_utf8(from.text))
    return refuse(place_at(from.text, first_bad_byte(from.text), from.begin),
                  "expected UTF-8, got a byte that is not");
  auto parsed = from.text.empty() ? result<json>{from.row}
                                  : parse_json(from.text, {.max_bytes = max_record_bytes});
  if (!parsed)
    return fail(errc::corrupt, moved(parsed.error().detail, from));
  if (!parsed->is_object())
    return refuse(from.begin, fmt::format("expected an object, got {}", kind_of(*parsed)));
  auto read = from_json(*parsed);
  if (!read) {
    auto at = read.error().field.empty() ? std::string_view::npos
                                         : find_member(from.text, name_of(read.error().field));
    return refuse(at == std::string_view::npos ? from.begin : place_at(from.text, at, from.begin),
                  read.error().what);
  }
  read->line = from.begin.line;
  return std::move(*read);
}

sample_reader::checked<sample> sample_reader::from_json(const json& row) {
  sample out;
  auto done = take_input(row, out);
  if (done)
    done = take_targets(row, out);
  if (done)
    done = take_id(row, out);
  if (done)
    done = take_metadata(row, out);
  if (done)
    done = take_files(row, out);
  if (done)
    done = take_images(row, out);
  if (!done)
    return tl::unexpected{done.error()};
  return out;
}

sample_reader::checked<void> sample_reader::take_input(const json& row, sample& into) const {
  const auto& name = name_of("input");
  const auto* input = find(row, "input");
  if (input == nullptr) {
    auto keys = keys_of(row);
    return tl::unexpected{
      misfit{"", fmt::format("expected a field '{}', got {}{}; another name is mapped with "
                             "--fields input=NAME",
                             name, keys.empty() ? "none" : fmt::format("{}", fmt::join(keys, ", ")),
                             did_you_mean(name, keys))}};
  }
  if (input->is_string()) {
    into.input = input->get<std::string>();
    if (trim(into.input).empty())
      return tl::unexpected{
        misfit{"input", fmt::format("'{}': expected a task, got blank text", name)}};
    return {};
  }
  if (input->is_array())
    return take_chat(*input, into);
  return tl::unexpected{misfit{"input", fmt::format("'{}': expected a text or a list of messages, "
                                                    "got {}",
                                                    name, kind_of(*input))}};
}

sample_reader::checked<void> sample_reader::take_chat(const json& messages, sample& into) const {
  auto refuse = [&](std::size_t i, std::string_view what) {
    return tl::unexpected{
      misfit{"input", fmt::format("'{}': message {}: {}", name_of("input"), i + 1, what)}};
  };
  std::vector<chat_message> chat;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto& m = messages[i];
    if (!m.is_object() || !m.contains("role") || !m.contains("content"))
      return refuse(i, "expected an object with role and content");
    auto from = role_from(string_or(m, "role"));
    if (!from)
      return refuse(i, "expected role system, user or assistant, got "
                         + std::string{utf8_prefix(dump_json(m["role"]), 40)});
    auto content = content_text(m["content"]);
    if (!content)
      return refuse(i, "expected content to be a text or a list of text parts");
    chat.push_back({*from, std::move(*content), {}, {}});
  }
  if (chat.empty() || chat.back().from != role::user)
    return tl::unexpected{misfit{
      "input", fmt::format("'{}': expected the last message to be the user's", name_of("input"))}};
  into.input = std::move(chat.back().content);
  chat.pop_back();
  into.history = std::move(chat);
  return {};
}

sample_reader::checked<void> sample_reader::take_targets(const json& row, sample& into) const {
  const auto* target = find(row, "target");
  if (target == nullptr)
    return {};
  for (const auto& x : target->is_array() ? *target : json::array({*target})) {
    auto text = scalar_text(x);
    if (!text)
      return tl::unexpected{
        misfit{"target", fmt::format("'{}': expected a text, a number or a list "
                                     "of these, got {}",
                                     name_of("target"), kind_of(x))}};
    into.targets.push_back(std::move(*text));
  }
  return {};
}

sample_reader::checked<void> sample_reader::take_id(const json& row, sample& into) const {
  const auto* id = find(row, "id");
  if (id == nullptr)
    return {};
  if (id->is_number_integer())
    into.id = id->dump();
  else if (id->is_string())
    into.id = std::string{trim(id->get_ref<const std::string&>())};
  if (into.id.empty() || into.id.size() > 512)
    return tl::unexpected{misfit{"id", fmt::format("'{}': expected a text of 1 to 512 bytes or a "
                                                   "whole number",
                                                   name_of("id"))}};
  if (std::ranges::any_of(into.id, [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
    return tl::unexpected{
      misfit{"id", fmt::format("'{}': expected no control characters", name_of("id"))}};
  return {};
}

sample_reader::checked<void> sample_reader::take_metadata(const json& row, sample& into) const {
  if (const auto* metadata = find(row, "metadata")) {
    if (!metadata->is_object())
      return tl::unexpected{
        misfit{"metadata", fmt::format("'{}': expected an object, got {}", name_of("metadata"),
                                       kind_of(*metadata))}};
    into.metadata = *metadata;
  }
  if (const auto* choices = find(row, "choices")) {
    if (!choices->is_array())
      return tl::unexpected{misfit{"choices", fmt::format("'{}': expected a list, got {}",
                                                          name_of("choices"), kind_of(*choices))}};
    into.metadata["choices"] = *choices;
  }
  return {};
}

sample_reader::checked<void> sample_reader::take_files(const json& row, sample& into) {
  const auto* files = find(row, "files");
  if (files == nullptr)
    return {};
  auto refuse = [&](std::string_view what) {
    return tl::unexpected{misfit{"files", fmt::format("'{}': {}", name_of("files"), what)}};
  };
  if (!files->is_object())
    return refuse(fmt::format("expected an object of path and content, got {}", kind_of(*files)));
  for (const auto& [path, value] : files->items()) {
    if (!stays_inside(path))
      return refuse(fmt::format("expected a relative path without '..', got '{}'", path));
    auto bytes = bytes_of(path, value);
    if (!bytes)
      return tl::unexpected{bytes.error()};
    into.files.push_back({path, std::move(*bytes)});
  }
  return {};
}

sample_reader::checked<std::shared_ptr<const std::string>>
sample_reader::bytes_of(const std::string& path, const json& value) {
  auto refuse = [&](std::string_view what) {
    return tl::unexpected{
      misfit{"files", fmt::format("'{}': {}: {}", name_of("files"), path, what)}};
  };
  if (value.is_object()) {
    if (value.size() != 1 || string_or(value, "file").empty())
      return refuse("expected {\"file\": name}");
    return load(string_or(value, "file"), "files");
  }
  if (!value.is_string())
    return refuse(
      fmt::format("expected a text, a data URI or {{\"file\": name}}, got {}", kind_of(value)));
  const auto& text = value.get_ref<const std::string&>();
  if (!is_data_uri(text))
    return std::make_shared<const std::string>(text);
  auto bytes = decode_data_uri(text);
  if (!bytes)
    return refuse("expected base64 after ';base64,'");
  return std::make_shared<const std::string>(std::move(*bytes));
}

sample_reader::checked<void> sample_reader::take_images(const json& row, sample& into) {
  const auto* images = find(row, "images");
  if (images == nullptr)
    return {};
  for (const auto& x : images->is_array() ? *images : json::array({*images})) {
    auto url = image_of(x);
    if (!url)
      return tl::unexpected{url.error()};
    into.images.push_back(std::move(*url));
  }
  return {};
}

sample_reader::checked<std::string> sample_reader::image_of(const json& value) {
  auto refuse = [&](const std::string& what) {
    return tl::unexpected{misfit{"images", fmt::format("'{}': {}", name_of("images"), what)}};
  };
  if (!value.is_string())
    return refuse(fmt::format("expected a file's name or a URL, got {}", kind_of(value)));
  const auto& name = value.get_ref<const std::string&>();
  if (is_image_url(name))
    return name;
  if (name.starts_with("data:"))
    return refuse("expected data:image/...;base64,...");
  auto bytes = load(name, "images");
  if (!bytes)
    return tl::unexpected{bytes.error()};
  auto url = image_url_of(**bytes);
  if (!url)
    return refuse(fmt::format("'{}' {}", name, url.error().detail));
  return *std::move(url);
}

sample_reader::checked<std::shared_ptr<const std::string>>
sample_reader::load(const std::string& name, const std::string& field) {
  auto refuse = [&](const std::string& what) {
    return tl::unexpected{misfit{field, fmt::format("'{}': {}", name_of(field), what)}};
  };
  if (auto it = loaded_.find(name); it != loaded_.end())
    return it->second;
  std::error_code failed;
  auto folder = fs::canonical(folder_.empty() ? "." : folder_, failed);
  auto full = fs::weakly_canonical(folder / name, failed);
  auto relative = full.lexically_relative(folder);
  // A dataset may come from anywhere: it names files beside it, not the user's keys.
  if (!stays_inside(name) || failed || relative.empty() || *relative.begin() == "..")
    return refuse(fmt::format("expected a file beside the dataset, got '{}'", name));
  auto bytes = read_whole_file(full.string(), max_file_bytes, pipes::refused);
  if (!bytes)
    return refuse(bytes.error().detail);
  return loaded_[name] = std::make_shared<const std::string>(std::move(*bytes));
}

}  // namespace troupe
