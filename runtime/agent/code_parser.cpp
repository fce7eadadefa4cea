#include "runtime/agent/code_parser.hpp"

#include "runtime/agent/fences.hpp"
#include "runtime/agent/python_scanner.hpp"
#include "runtime/core/text.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace troupe {
namespace {

constexpr auto npos = std::string_view::npos;

struct thought_tags {
  std::string_view open;
  std::string_view close;
};
constexpr std::array<thought_tags, 3> thoughts{
  {{"<think>", "</think>"}, {"<thinking>", "</thinking>"}, {"<reasoning>", "</reasoning>"}}};

bool has_at(std::string_view text, std::size_t at, std::string_view what) noexcept {
  return text.substr(at, what.size()) == what;
}

/// One pass over a reply: separates thoughts, code blocks and the rest.
class reply_scan {
public:
  reply_scan(std::string_view reply, const code_tags& tags) : reply_{reply}, tags_{tags} {
    while (at_ < reply_.size() && !stopped_)
      step();
    keep_until(std::min(at_, reply_.size()));
  }

  std::string visible;                   ///< the reply without thoughts
  std::vector<std::string_view> blocks;  ///< between the code tags
  bool cut_in_block = false;             ///< the last block has no closing tag
  bool in_thought = false;

private:
  void step() {
    auto c = reply_[at_];
    auto line_start = at_ == 0 || reply_[at_ - 1] == '\n';
    if (opens_code()) {
      take_code();
    } else if (line_start && has_at(reply_, at_, "```")) {
      in_fence_ = !in_fence_;
      at_ += 3;
    } else if (line_start && !in_fence_ && !blocks.empty() && makes_up_observation()) {
      stopped_ = true;
    } else if (c != '<' || in_fence_ || !take_thought()) {
      ++at_;
    }
  }

  /// A tag in backticks is talked about, not used.
  bool opens_code() const {
    if (tags_.open.empty() || reply_[at_] != tags_.open.front() || !has_at(reply_, at_, tags_.open))
      return false;
    auto past = at_ + tags_.open.size();
    return tags_.open.find('`') != npos || at_ == 0 || reply_[at_ - 1] != '`'
           || past >= reply_.size() || reply_[past] != '`';
  }

  bool makes_up_observation() const {
    return has_at(reply_, at_, "Observation:") || has_at(reply_, at_, "Calling tools:");
  }

  void take_code() {
    auto from = at_ + tags_.open.size();
    auto end = find_outside_strings(reply_, from, [&](std::size_t i) {
      return has_at(reply_, i, tags_.close) || (reply_[i] == '<' && thought_end(i) != 0);
    });
    if (end != npos && !has_at(reply_, end, tags_.close))
      return forget_until(end + thought_end(end));  // a draft in a thought whose opening is missing
    cut_in_block = end == npos;
    blocks.push_back(reply_.substr(from, cut_in_block ? npos : end - from));
    at_ = cut_in_block ? reply_.size() : end + tags_.close.size();
  }

  bool take_thought() {
    for (auto& t : thoughts) {
      if (has_at(reply_, at_, t.open)) {
        keep_until(at_);
        auto end = reply_.find(t.close, at_);
        in_thought = end == npos;
        at_ = kept_ = in_thought ? reply_.size() : end + t.close.size();
        return true;
      }
    }
    if (auto size = thought_end(at_); size != 0) {
      forget_until(at_ + size);
      return true;
    }
    return false;
  }

  /// The length of a closing think tag at `i`, else 0.
  std::size_t thought_end(std::size_t i) const {
    for (auto& t : thoughts)
      if (has_at(reply_, i, t.close))
        return t.close.size();
    return 0;
  }

  void keep_until(std::size_t end) {
    visible += reply_.substr(kept_, end - kept_);
    kept_ = end;
  }

  /// Everything so far was a thought.
  void forget_until(std::size_t end) {
    visible.clear();
    blocks.clear();
    at_ = kept_ = end;
  }

  std::string_view reply_;
  const code_tags& tags_;
  std::size_t at_ = 0;
  std::size_t kept_ = 0;  ///< up to here the reply is in `visible` or dropped
  bool in_fence_ = false;
  bool stopped_ = false;
};

std::string unwrapped(std::string_view block) {
  auto inner = trim(block);
  if (!inner.starts_with("```"))
    return tidy_block(block);
  auto code = fenced_code(inner, fence_kind::python);
  if (code.empty())
    code = fenced_code(inner, fence_kind::unlabelled);
  return code.empty() ? tidy_block(block) : code;
}

std::string joined(const std::vector<std::string_view>& blocks) {
  std::string code;
  for (auto block : blocks) {
    auto part = unwrapped(block);
    if (part.empty())
      continue;
    if (!code.empty())
      code += "\n\n";
    code += part;
  }
  return code;
}

/// The message as the model should have ended it, so that memory shows it how.
std::string closed(std::string text, std::string_view close) {
  if (close.starts_with('`') && !text.ends_with('\n'))
    text += '\n';
  return text += close;
}

bool says(std::string_view text, std::string_view lower_case_word) {
  auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; };
  return std::search(text.begin(), text.end(), lower_case_word.begin(), lower_case_word.end(), same)
         != text.end();
}

}  // namespace

parsed_reply parse_reply(std::string_view reply, const code_tags& tags) {
  reply_scan scan{reply, tags};
  parsed_reply out;
  out.in_thought = scan.in_thought;
  out.code = joined(scan.blocks);
  if (!out.code.empty())
    out.source = code_source::tags;
  else if (out.code = fenced_code(scan.visible, fence_kind::python); !out.code.empty())
    out.source = code_source::fence;
  else if (out.code = fenced_code(scan.visible, fence_kind::unlabelled); !out.code.empty())
    out.source = code_source::fence;
  else if (auto all = trim(scan.visible); !all.empty() && scan.blocks.empty()) {
    out.source = code_source::bare;
    out.code = all;
  }
  out.cut = out.source == code_source::tags && scan.cut_in_block;
  out.message =
    out.cut ? closed(std::move(scan.visible), tags.close) : std::string{trim(scan.visible)};
  return out;
}

std::string format_error(const parsed_reply& parsed, const code_tags& tags) {
  std::string open{tags.open}, close{tags.close};
  std::string out = "Your reply held no code that could be run";
  out += parsed.in_thought ? ": it ended inside a think block, and what is thought is not run.\n"
                           : ".\n";
  out += "Write a short thought, then Python between the tags, like this:\n"
         "Thought: what to do next and why\n"
         + open + "\nprint(\"your code here\")\n" + close + "\n";
  if (mentions_answer(parsed.message))
    out += "If you meant to give your final answer, give it by code:\n" + open
           + "\nfinal_answer(\"your answer here\")\n" + close + "\n";
  return out;
}

bool mentions_answer(std::string_view text) {
  return says(text, "final") && says(text, "answer");
}

std::string without_thoughts(std::string_view reply) {
  code_tags none{"", ""};
  return std::string{trim(reply_scan{reply, none}.visible)};
}

}  // namespace troupe
