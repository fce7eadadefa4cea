#pragma once
// Every message between our actors, with its reply and its errors. All of them stay inside one
// process: they carry shared buffers, promises or callbacks on purpose, so CAF is told not to
// serialise them. What an operator or another process sees is the journal, not these.

#include "executors/executor.hpp"
#include "runtime/agent/events.hpp"
#include "runtime/agent/live.hpp"
#include "runtime/journal/journal.hpp"
#include "runtime/model/chat.hpp"
#include "runtime/policy/fair_queue.hpp"
#include "runtime/policy/rate_limit.hpp"
#include "runtime/policy/restart.hpp"
#include "tools/tool.hpp"

#include <caf/actor.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/type_id.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

class address;
class budget_account;
struct run_order;

// --- for every actor
// ------------------------------------------------------------------------------

/// Finish what cannot be left half done, then quit. No reply; the sender watches for the end.
struct stop {};

// --- supervisor
// -----------------------------------------------------------------------------------

struct child_spec {
  std::string name;
  restart_type restart = restart_type::permanent;
  std::function<caf::actor(caf::actor_system&)> start;
  std::shared_ptr<address> where;  ///< kept pointing at the living child; may be empty
  millis shutdown{5'000};          ///< from `stop` to the kill; negative: no limit
};

/// Starts one more child (simple_one_for_one, one_for_one). Reply: child_started. When the child
/// ends for good, `notify` gets child_ended.
struct start_child {
  child_spec spec;
  caf::actor notify;
};
struct child_started {
  caf::actor child;
};
struct child_ended {
  std::string name;
  ending how;
};

/// What a supervisor did about an end, for the journal and the log.
struct supervision_report {
  std::string supervisor;
  std::string child;
  std::string reason;
  std::string decision;  ///< started, restart after N ms, forgotten, stopped, killed, gave up
};

/// Internal: a watched child is gone. `generation` tells a late notice from a new one.
struct child_down {
  std::string name;
  std::uint64_t generation = 0;
  ending how;
};
struct restart_due {
  std::string name;
};
struct stop_overdue {
  std::string name;
  std::uint64_t generation = 0;
};

// --- model_client
// ---------------------------------------------------------------------------------

/// Asks for one reply. Reply: model_answer, always; failures are inside it. With a viewer the reply
/// is streamed, and the viewer gets model_seen as it comes, all of it before the answer.
struct model_ask {
  model_request request;
  caf::actor viewer{};
  job_share from{};                         ///< whose turn this is one of, where several submit
  std::shared_ptr<budget_account> payer{};  ///< empty: nobody counts
};
/// Pieces of a reply that is on its way. After a `restart` the reply begins anew.
struct model_seen {
  run_id run;
  std::vector<model_delta> pieces;
};
struct model_answer {
  tl::expected<model_reply, model_failure> outcome;
};

/// Abandons the run's open call: its socket is closed, its asker gets kind `cancelled`. No reply.
struct model_cancel {
  run_id run;
};

/// Other limits from now on, for each endpoint of the model asked for; what is empty stays. No
/// reply.
struct model_tune {
  std::optional<rate_settings> rates;
  std::optional<std::size_t> max_in_flight;
};

/// Internal: a try has ended, a backoff is over.
struct attempt_done {
  std::uint64_t call = 0;
  std::uint32_t attempt = 0;
  tl::expected<model_reply, model_failure> outcome;
};
struct attempt_due {
  std::uint64_t call = 0;
};
struct pause_over {};

/// Internal to reply_keeper: what was kept is to be made durable.
struct flush_due {};

// --- tool_host
// ------------------------------------------------------------------------------------

/// Runs one native tool. Reply: tool_answer; the tool's errors are inside it.
struct tool_call {
  std::shared_ptr<const tool_set> tools;
  std::string name;
  json arguments;
  tool_context context;
};
struct tool_answer {
  call_id id;
  result<json> value;
};

// --- executor_pool and sandbox
// --------------------------------------------------------------------

/// Asks an executor_pool for a sandbox that lives no longer than `owner`.
/// Reply: sandbox_ready, or an error: over_budget (queue full), unavailable, timeout.
struct sandbox_open {
  run_id run;
  sandbox_spec spec;
  caf::actor owner;
  std::uint32_t below = 0;  ///< as many levels of managed agents may want one while it is open
  bool managed = false;     ///< its run's manager waits, and holds what it has
};
struct sandbox_ready {
  caf::actor sandbox;
  std::string isolation;
};

/// Runs one snippet. Reply: snippet_answer, always.
struct snippet_run {
  snippet code;
};
struct snippet_answer {
  snippet_outcome outcome;
};

/// The running snippet gets KeyboardInterrupt; nothing when there is none.
struct snippet_interrupt {};

/// To a manager that lends its sandbox, from a run of its team: runs the snippet when its turn has
/// come. Reply: snippet_answer, or an error when there is no sandbox to be had.
struct lent_run {
  run_id run;
  caf::actor agent;  ///< hears of the snippet's calls and output
  snippet code;
};

/// Likewise: that run does not wait for its snippet any more.
struct lent_end {
  run_id run;
};

/// To the owner: code inside called a tool. Answered with tool_answer to `sandbox`.
struct tool_wanted {
  code_call call;
  caf::actor sandbox;
};

/// To the owner: raw output as it comes, for live views.
struct output_seen {
  std::string bytes;
};

/// To the owner: code inside has connected somewhere, or was refused.
struct connection_seen {
  egress_record record;
};

/// Ends a sandbox. Reply: sandbox_closed.
struct sandbox_close {};
struct sandbox_closed {
  close_report report;
};

/// Internal: the backend has opened a sandbox, ended a snippet, seen output.
struct sandbox_opened {
  std::uint64_t ticket = 0;
  result<std::shared_ptr<sandbox>> opened;
};
struct snippet_ended {
  snippet_outcome outcome;
};
struct sandbox_gone {
  std::uint64_t ticket = 0;
  close_report report;
};
struct owner_down {};
struct opener_down {
  caf::actor_id who = 0;
};

// --- journal_writer
// -------------------------------------------------------------------------------

/// Appends to the journal. Reply: journal_durable once it is committed, or the journal's error.
struct journal_append {
  std::shared_ptr<const journal_entry> entry;
};
struct journal_durable {};

/// Internal: the journal's thread has committed, or failed to commit, append number `ticket`.
struct append_done {
  std::uint64_t ticket = 0;
  result<void> outcome;
};

// --- event_hub
// ------------------------------------------------------------------------------------

/// Adds a viewer. A sink that says false once is dropped, never waited for. No reply.
struct subscribe {
  std::string name;
  event_sink events;       ///< may be empty
  progress_sink progress;  ///< may be empty
};

// --- agent
// ----------------------------------------------------------------------------------------

/// Starts the run. No reply: the end comes as run_finished to the agent's owner.
struct run_start {
  run_started input;
};
struct run_cancel {
  std::string reason;
};
struct run_deadline {};

struct run_finished {
  run_id run;
  finish end;
  std::uint32_t sandboxes = 0;
  std::uint32_t tool_calls = 0;
  micros wall{0};
  micros model_wait{0};
  std::string model;
  std::string journal_error;  ///< not empty: what happened could not be written
};

// --- batch
// ----------------------------------------------------------------------------------------

/// Take no new samples; the batch ends when the running ones have. No reply.
struct batch_stop {};

/// Cancel the running ones too. No reply.
struct batch_cancel {
  std::string reason;
};

// --- runs
// -----------------------------------------------------------------------------------------

/// Starts one run of its own, or has it wait for a place. No reply: the order's `done` hears the
/// end.
struct run_submit {
  std::shared_ptr<const run_order> order;
};
/// Cancels a submitted run, one that still waits too. No reply.
struct run_call_off {
  run_id run;
  std::string reason;
};

/// Where a run that is driven by hand stands still: before it asks its model.
enum class run_pace : std::uint8_t { pause, resume, step };

/// To `runs`, and from there to the run's agent. A step lets one ask through, the next one when
/// none is held. No reply.
struct run_gate {
  run_id run;
  run_pace how = run_pace::resume;
};

/// Internal to runs: an agent has ended.
struct agent_gone {
  run_id run;
  ending how;
};

}  // namespace troupe

#define TROUPE_LOCAL_MESSAGE(type) CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::type)

TROUPE_LOCAL_MESSAGE(stop)
TROUPE_LOCAL_MESSAGE(start_child)
TROUPE_LOCAL_MESSAGE(child_started)
TROUPE_LOCAL_MESSAGE(child_ended)
TROUPE_LOCAL_MESSAGE(supervision_report)
TROUPE_LOCAL_MESSAGE(child_down)
TROUPE_LOCAL_MESSAGE(restart_due)
TROUPE_LOCAL_MESSAGE(stop_overdue)
TROUPE_LOCAL_MESSAGE(model_ask)
TROUPE_LOCAL_MESSAGE(model_answer)
TROUPE_LOCAL_MESSAGE(model_seen)
TROUPE_LOCAL_MESSAGE(model_cancel)
TROUPE_LOCAL_MESSAGE(model_tune)
TROUPE_LOCAL_MESSAGE(attempt_done)
TROUPE_LOCAL_MESSAGE(attempt_due)
TROUPE_LOCAL_MESSAGE(pause_over)
TROUPE_LOCAL_MESSAGE(flush_due)
TROUPE_LOCAL_MESSAGE(tool_call)
TROUPE_LOCAL_MESSAGE(tool_answer)
TROUPE_LOCAL_MESSAGE(sandbox_open)
TROUPE_LOCAL_MESSAGE(sandbox_ready)
TROUPE_LOCAL_MESSAGE(snippet_run)
TROUPE_LOCAL_MESSAGE(snippet_answer)
TROUPE_LOCAL_MESSAGE(snippet_interrupt)
TROUPE_LOCAL_MESSAGE(lent_run)
TROUPE_LOCAL_MESSAGE(lent_end)
TROUPE_LOCAL_MESSAGE(tool_wanted)
TROUPE_LOCAL_MESSAGE(output_seen)
TROUPE_LOCAL_MESSAGE(connection_seen)
TROUPE_LOCAL_MESSAGE(sandbox_close)
TROUPE_LOCAL_MESSAGE(sandbox_closed)
TROUPE_LOCAL_MESSAGE(sandbox_opened)
TROUPE_LOCAL_MESSAGE(snippet_ended)
TROUPE_LOCAL_MESSAGE(sandbox_gone)
TROUPE_LOCAL_MESSAGE(owner_down)
TROUPE_LOCAL_MESSAGE(opener_down)
TROUPE_LOCAL_MESSAGE(journal_append)
TROUPE_LOCAL_MESSAGE(journal_durable)
TROUPE_LOCAL_MESSAGE(append_done)
TROUPE_LOCAL_MESSAGE(run_event)
TROUPE_LOCAL_MESSAGE(batch_progress)
TROUPE_LOCAL_MESSAGE(subscribe)
TROUPE_LOCAL_MESSAGE(run_start)
TROUPE_LOCAL_MESSAGE(run_cancel)
TROUPE_LOCAL_MESSAGE(run_deadline)
TROUPE_LOCAL_MESSAGE(run_finished)
TROUPE_LOCAL_MESSAGE(batch_stop)
TROUPE_LOCAL_MESSAGE(batch_cancel)
TROUPE_LOCAL_MESSAGE(run_submit)
TROUPE_LOCAL_MESSAGE(run_call_off)
TROUPE_LOCAL_MESSAGE(run_gate)
TROUPE_LOCAL_MESSAGE(agent_gone)

CAF_BEGIN_TYPE_ID_BLOCK(troupe, first_custom_type_id)
CAF_ADD_TYPE_ID(troupe, (troupe::stop))
CAF_ADD_TYPE_ID(troupe, (troupe::start_child))
CAF_ADD_TYPE_ID(troupe, (troupe::child_started))
CAF_ADD_TYPE_ID(troupe, (troupe::child_ended))
CAF_ADD_TYPE_ID(troupe, (troupe::supervision_report))
CAF_ADD_TYPE_ID(troupe, (troupe::child_down))
CAF_ADD_TYPE_ID(troupe, (troupe::restart_due))
CAF_ADD_TYPE_ID(troupe, (troupe::stop_overdue))
CAF_ADD_TYPE_ID(troupe, (troupe::model_ask))
CAF_ADD_TYPE_ID(troupe, (troupe::model_answer))
CAF_ADD_TYPE_ID(troupe, (troupe::model_seen))
CAF_ADD_TYPE_ID(troupe, (troupe::model_cancel))
CAF_ADD_TYPE_ID(troupe, (troupe::model_tune))
CAF_ADD_TYPE_ID(troupe, (troupe::attempt_done))
CAF_ADD_TYPE_ID(troupe, (troupe::attempt_due))
CAF_ADD_TYPE_ID(troupe, (troupe::pause_over))
CAF_ADD_TYPE_ID(troupe, (troupe::flush_due))
CAF_ADD_TYPE_ID(troupe, (troupe::tool_call))
CAF_ADD_TYPE_ID(troupe, (troupe::tool_answer))
CAF_ADD_TYPE_ID(troupe, (troupe::sandbox_open))
CAF_ADD_TYPE_ID(troupe, (troupe::sandbox_ready))
CAF_ADD_TYPE_ID(troupe, (troupe::snippet_run))
CAF_ADD_TYPE_ID(troupe, (troupe::snippet_answer))
CAF_ADD_TYPE_ID(troupe, (troupe::snippet_interrupt))
CAF_ADD_TYPE_ID(troupe, (troupe::lent_run))
CAF_ADD_TYPE_ID(troupe, (troupe::lent_end))
CAF_ADD_TYPE_ID(troupe, (troupe::tool_wanted))
CAF_ADD_TYPE_ID(troupe, (troupe::output_seen))
CAF_ADD_TYPE_ID(troupe, (troupe::connection_seen))
CAF_ADD_TYPE_ID(troupe, (troupe::sandbox_close))
CAF_ADD_TYPE_ID(troupe, (troupe::sandbox_closed))
CAF_ADD_TYPE_ID(troupe, (troupe::sandbox_opened))
CAF_ADD_TYPE_ID(troupe, (troupe::snippet_ended))
CAF_ADD_TYPE_ID(troupe, (troupe::sandbox_gone))
CAF_ADD_TYPE_ID(troupe, (troupe::owner_down))
CAF_ADD_TYPE_ID(troupe, (troupe::opener_down))
CAF_ADD_TYPE_ID(troupe, (troupe::journal_append))
CAF_ADD_TYPE_ID(troupe, (troupe::journal_durable))
CAF_ADD_TYPE_ID(troupe, (troupe::append_done))
CAF_ADD_TYPE_ID(troupe, (troupe::run_event))
CAF_ADD_TYPE_ID(troupe, (troupe::batch_progress))
CAF_ADD_TYPE_ID(troupe, (troupe::subscribe))
CAF_ADD_TYPE_ID(troupe, (troupe::run_start))
CAF_ADD_TYPE_ID(troupe, (troupe::run_cancel))
CAF_ADD_TYPE_ID(troupe, (troupe::run_deadline))
CAF_ADD_TYPE_ID(troupe, (troupe::run_finished))
CAF_ADD_TYPE_ID(troupe, (troupe::batch_stop))
CAF_ADD_TYPE_ID(troupe, (troupe::batch_cancel))
CAF_ADD_TYPE_ID(troupe, (troupe::run_submit))
CAF_ADD_TYPE_ID(troupe, (troupe::run_call_off))
CAF_ADD_TYPE_ID(troupe, (troupe::run_gate))
CAF_ADD_TYPE_ID(troupe, (troupe::agent_gone))
CAF_END_TYPE_ID_BLOCK(troupe)
