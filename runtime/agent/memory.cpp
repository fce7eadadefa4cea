#include "runtime/agent/memory.hpp"

#include "runtime/core/text.hpp"
#include "runtime/model/transcript_rewriter.hpp"

#include <utility>
#include <vector>

namespace troupe {
namespace {

constexpr std::string_view observation_mark = "Observation:\n";

/// What is left of an observation takes about so much: smaller ones are not worth it.
constexpr std::size_t stub_bytes = 200;

std::string cut_notice(std::string_view text) {
  auto mark = text.starts_with(observation_mark) ? observation_mark : std::string_view{};
  return std::string{mark} + "[" + std::to_string(text.size() - mark.size())
         + " bytes were cut here to make room in the context. What you still need of them must be "
           "got again.]";
}

std::string quartered(std::string_view text) {
  return cut_middle(text, text.size() / 4);
}

}  // namespace

void run_memory::append_task(const chat_message& task) {
  task_at_ = static_cast<std::uint32_t>(messages_.size());
  messages_.append(task);
}

void run_memory::append_plan(std::string plan) {
  plan_at_ = static_cast<std::uint32_t>(messages_.size());
  messages_.append({.from = role::assistant, .content = std::move(plan)});
  messages_.append(
    {.from = role::user, .content = "Now carry out this plan, one step after the other."});
}

compaction run_memory::cut_observations(std::size_t target, std::uint32_t keep_steps) {
  auto end = tail_start(keep_steps);
  auto left = messages_.bytes();
  std::vector<bool> cut(messages_.size(), false);
  std::uint32_t count = 0;
  for (auto i = task_at_ + std::size_t{1}; i < end && left > target; ++i) {
    auto size = messages_.bytes_of(i);
    if (!is_observation(i) || size <= 2 * stub_bytes)
      continue;
    cut[i] = true;
    ++count;
    left -= size - stub_bytes;
  }
  if (count == 0)
    return {};
  transcript_rewriter copy{messages_};
  for (std::size_t i = 0; i < messages_.size(); ++i)
    if (!(cut[i] ? copy.keep(i, cut_notice) : copy.keep(i)))
      return {};
  return put(copy.take(), count);
}

std::size_t run_memory::old_bytes(std::uint32_t keep_steps) const {
  std::size_t out = 0;
  auto end = tail_start(keep_steps);
  for (std::size_t i = 0; i < end; ++i)
    if (!stays(i))
      out += messages_.bytes_of(i);
  return out;
}

compaction run_memory::replace_old(std::string_view summary, std::uint32_t keep_steps,
                                   const chat_message& task) {
  auto tail = tail_start(keep_steps);
  transcript_rewriter copy{messages_};
  std::uint32_t task_now = 0, plan_now = 0, left_out = 0;
  for (std::size_t i = 0; i < tail; ++i) {
    if (!stays(i)) {
      ++left_out;
      continue;
    }
    if (i == task_at_)
      task_now = static_cast<std::uint32_t>(copy.size());
    if (i == plan_at_ && i != 0)
      plan_now = static_cast<std::uint32_t>(copy.size());
    if (!copy.keep(i) && i == task_at_)
      copy.append(task);
  }
  auto summary_now = static_cast<std::uint32_t>(copy.size());
  copy.append({.from = role::user, .content = std::string{summary}});
  if (plan_at_ >= tail)
    plan_now = static_cast<std::uint32_t>(plan_at_ - tail) + summary_now + 1;
  for (auto i = tail; i < messages_.size(); ++i)
    if (!copy.keep(i))
      return {};
  auto done = put(copy.take(), left_out);
  task_at_ = task_now;
  plan_at_ = plan_now;
  summary_at_ = summary_now;
  return done;
}

compaction run_memory::squeeze() {
  auto newest = tail_start(1);
  transcript_rewriter copy{messages_};
  std::uint32_t count = 0;
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    auto shorter = is_observation(i) && messages_.bytes_of(i) > 2 * stub_bytes;
    auto kept = !shorter     ? copy.keep(i)
                : i < newest ? copy.keep(i, cut_notice)
                             : copy.keep(i, quartered);
    if (!kept)
      return {};
    count += shorter ? 1 : 0;
  }
  return count == 0 ? compaction{} : put(copy.take(), count);
}

/// Where the last steps begin; after the task when there are not so many.
std::size_t run_memory::tail_start(std::uint32_t keep_steps) const {
  auto start = messages_.size();
  for (auto i = messages_.size(); i > task_at_ + std::size_t{1} && keep_steps > 0; --i)
    if (messages_.from(i - 1) == role::assistant && i - 1 != plan_at_) {
      start = i - 1;
      --keep_steps;
    }
  return start;
}

/// 0 when there is none.
std::size_t run_memory::first_user() const {
  for (std::size_t i = 1; i < messages_.size(); ++i)
    if (messages_.from(i) == role::user)
      return i;
  return 0;
}

bool run_memory::is_observation(std::size_t i) const {
  auto from = messages_.from(i);
  return i > task_at_ && (from == role::tool || from == role::user) && i != summary_at_
         && (plan_at_ == 0 || i != plan_at_ + std::size_t{1});
}

bool run_memory::stays(std::size_t i) const {
  auto of_plan = plan_at_ != 0 && (i == plan_at_ || i == plan_at_ + std::size_t{1});
  return i == 0 || i == task_at_ || of_plan || i == first_user();
}

compaction run_memory::put(transcript made, std::uint32_t messages) {
  compaction done{messages_.bytes(), made.bytes(), messages};
  messages_ = std::move(made);
  return done;
}

}  // namespace troupe
