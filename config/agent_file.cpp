#include "config/agent_file.hpp"

#include "config/agent_keys.hpp"
#include "config/yaml_mapping.hpp"
#include "runtime/agent/python_name.hpp"
#include "runtime/core/text.hpp"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

namespace troupe {
namespace {

constexpr std::size_t most_files = 1'000;  // of one team

tl::unexpected<error> bad(const std::string& where, std::string_view what) {
  return fail(errc::invalid_argument, fmt::format("{}: {}", where, what));
}

/// A file that another one names lies beside that.
std::string beside(const std::string& file, const std::string& named) {
  auto folder = std::filesystem::path{file}.parent_path();
  return (folder / named).lexically_normal().string();
}

bool names_file(std::string_view key, const std::string& word) {
  return !word.empty()
         && (key == "prompts" || key == "answer_schema"
             || (key == "profile"
                 && (word.find('/') != std::string::npos || word.ends_with(".yaml"))));
}

/// Python's own names cannot be called as an agent.
std::string fault_of_name(const std::string& name) {
  if (!is_python_identifier(name))
    return "must be a Python identifier of at most 64 letters, digits and '_'";
  if (is_python_keyword(name))
    return "is a Python keyword";
  return is_python_builtin(name) ? "is a Python builtin, which it would hide" : "";
}

std::string name_from_path(const std::string& path) {
  auto stem = std::filesystem::path{path}.stem().string();
  std::replace(stem.begin(), stem.end(), '-', '_');
  return fault_of_name(stem).empty() ? stem : "agent";
}

/// The files of a team as they are read: each once, however often it is named.
class team_reader {
public:
  result<std::shared_ptr<const agent_file>> read(const std::string& path);

private:
  std::vector<std::string> open_;  ///< that are being read, from the outermost
  std::map<std::string, std::shared_ptr<const agent_file>> done_;
};

/// One file.
class file_reader {
public:
  file_reader(team_reader& team, std::string path, std::string text)
    : team_{team}, text_{std::move(text)}, out_{std::make_shared<agent_file>()} {
    out_->path = std::move(path);
    out_->name = name_from_path(out_->path);
  }

  result<std::shared_ptr<const agent_file>> read() {
    if (!is_utf8(text_))
      return bad(out_->path, "is not valid UTF-8");
    try {
      auto root = YAML::Load(text_);
      if (!root.IsMap() || root.Style() == YAML::EmitterStyle::Flow)
        return bad(at(root), "expected lines of 'key: value'");
      if (auto taken = take_all(root); !taken)
        return fail(taken.error());
    } catch (const YAML::Exception& e) {
      return bad(place(e.mark), e.msg);
    }
    return std::shared_ptr<const agent_file>{out_};
  }

private:
  [[nodiscard]] std::string place(const YAML::Mark& mark) const {
    return mark.is_null()
             ? out_->path
             : fmt::format("{}, line {}, column {}", out_->path, mark.line + 1, mark.column + 1);
  }
  [[nodiscard]] std::string at(const YAML::Node& node) const { return place(node.Mark()); }

  result<void> take_all(const YAML::Node& root) {
    std::set<std::string> seen;
    for (auto it = root.begin(); it != root.end(); ++it) {
      auto key = it->first.IsScalar() ? it->first.Scalar() : std::string{};
      if (!seen.insert(key).second)
        return bad(at(it->first), fmt::format("'{}' stands in the file twice", key));
      auto next = std::next(it);
      end_line_ = next == root.end() ? -1 : next->first.Mark().line;
      if (auto taken = take(key, it->first, it->second); !taken)
        return taken;
    }
    return {};
  }

  result<void> take(const std::string& key, const YAML::Node& name, const YAML::Node& value) {
    if (value.IsNull())  // as if it were not written
      return is_agent_key(key) ? result<void>{} : unknown(key, name);
    if (key == "name")
      return take_name(value);
    if (key == "description")
      return take_text(key, value, out_->description);
    if (key == "limits")
      return take_limits(value);
    if (key == "children")
      return take_children(value);
    if (key == "prompts" && value.IsMap())
      return take_prompts(value);
    const auto* row = agent_option(key);
    return row != nullptr ? take_option(*row, value) : unknown(key, name);
  }

  result<void> unknown(const std::string& key, const YAML::Node& name) const {
    if (key == "api_key")
      return bad(at(name), "keys do not belong in a file: put the key into a variable and name "
                           "that with api_key_env");
    if (is_agent_limit(key))
      return bad(at(name), fmt::format("'{}' belongs under limits:", key));
    return bad(at(name), fmt::format("unknown key '{}'{}", utf8_prefix(key, 80),
                                     did_you_mean(key, agent_keys())));
  }

  result<void> take_text(const std::string& key, const YAML::Node& value, std::string& into) const {
    if (!value.IsScalar())
      return bad(at(value), key + ": must be a text");
    into = value.Scalar();
    return {};
  }

  result<void> take_name(const YAML::Node& value) {
    if (auto ok = take_text("name", value, out_->name); !ok)
      return ok;
    auto fault = fault_of_name(out_->name);
    return fault.empty() ? result<void>{}
                         : bad(at(value), fmt::format("name: '{}' {}", out_->name, fault));
  }

  result<void> take_option(const option_spec& row, const YAML::Node& value) {
    // The option's name is in the message anyway: where the key has another, it is too.
    option_input in{std::string{row.name}, {}, at(value) + (row.name == "agent" ? ": kind" : "")};
    if (value.IsScalar()) {
      in.words.push_back(value.Scalar());
    } else if (value.IsSequence() && row.takes_several()) {
      for (const auto& x : value) {
        if (!x.IsScalar())
          return bad(at(x), fmt::format("{}: each element must be a text", row.name));
        in.words.push_back(x.Scalar());
      }
    } else {
      return bad(at(value),
                 fmt::format("{}: a {} is not {}", row.name, value.IsMap() ? "mapping" : "sequence",
                             accepted_form(row)));
    }
    if (in.words.size() == 1 && names_file(row.name, in.words[0]))
      in.words[0] = beside(out_->path, in.words[0]);
    out_->options.push_back(std::move(in));
    return {};
  }

  result<void> take_limits(const YAML::Node& value) {
    if (!value.IsMap())
      return bad(at(value), "limits: must be a mapping of max_steps, run_time and so on");
    for (const auto& x : value) {
      auto key = x.first.IsScalar() ? x.first.Scalar() : std::string{};
      if (!is_agent_limit(key))
        return bad(at(x.first), fmt::format("limits: unknown key '{}'{}", utf8_prefix(key, 80),
                                            did_you_mean(key, agent_limits())));
      if (x.second.IsNull())
        continue;
      if (auto taken = take_option(*find_option(key), x.second); !taken)
        return taken;
    }
    return {};
  }

  /// The reader of prompts gets the file's text with nothing but them in it, so that the lines and
  /// columns of its messages are those of the file.
  result<void> take_prompts(const YAML::Node& value) {
    auto mark = value.Mark();
    std::string only;
    std::size_t begin = 0;
    for (int line = 0; begin < text_.size() && (end_line_ < 0 || line < end_line_); ++line) {
      auto end = std::min(text_.find('\n', begin), text_.size());
      auto skipped = line < mark.line ? end - begin : 0;
      if (line == mark.line) {
        skipped = static_cast<std::size_t>(mark.column);
        only.append(skipped, ' ');
      }
      only.append(text_, begin + skipped, end - begin - skipped).push_back('\n');
      begin = end + 1;
    }
    auto given = load_given_prompts(only, out_->path);
    if (!given)
      return fail(given.error());
    out_->prompts = *std::move(given);
    // A file of prompts that the configuration names is not the agent's.
    out_->options.push_back({"prompts", {""}, at(value)});
    return {};
  }

  result<void> take_children(const YAML::Node& value) {
    if (!value.IsSequence())
      return bad(at(value), "children: must be a list of agent files");
    std::set<std::string> names;
    for (const auto& x : value) {
      if (!x.IsScalar())
        return bad(at(x), "children: each must be the path of an agent file");
      agent_child child{beside(out_->path, x.Scalar()), at(x), nullptr};
      auto read = team_.read(child.path);
      if (!read)  // a file that could be opened names itself
        return read.error().detail.find(", line ") != std::string::npos
                 ? fail(read.error())
                 : bad(at(x), "children: " + read.error().detail);
      child.agent = *std::move(read);
      if (!names.insert(child.agent->name).second)
        return bad(at(x), fmt::format("children: two of them are called '{}'", child.agent->name));
      out_->children.push_back(std::move(child));
    }
    return {};
  }

  team_reader& team_;
  std::string text_;
  std::shared_ptr<agent_file> out_;
  int end_line_ = -1;  // of the key that is being taken; -1: the file's end
};

result<std::shared_ptr<const agent_file>> team_reader::read(const std::string& path) {
  std::error_code ec;
  auto real = std::filesystem::weakly_canonical(path, ec).string();
  if (auto known = done_.find(real); known != done_.end())
    return known->second;
  auto same = [&](const std::string& open) {
    return std::filesystem::weakly_canonical(open, ec) == real;
  };
  if (auto first = std::find_if(open_.begin(), open_.end(), same); first != open_.end()) {
    std::vector<std::string> ring{first, open_.end()};
    ring.push_back(*first);
    return fail(errc::invalid_argument, fmt::format("cyclic team: {}", fmt::join(ring, " -> ")));
  }
  if (done_.size() + open_.size() >= most_files)
    return fail(errc::invalid_argument, "the team has more than 1000 files");
  auto text = read_small_file(path);
  if (!text)
    return fail(text.error());
  open_.push_back(path);
  auto out = file_reader{*this, path, *std::move(text)}.read();
  open_.pop_back();
  if (out)
    done_.emplace(real, *out);
  return out;
}

}  // namespace

result<std::shared_ptr<const agent_file>> read_agent_file(const std::string& path) {
  return team_reader{}.read(path);
}

}  // namespace troupe
