#include "executors/worker_request.hpp"

#include <algorithm>

namespace troupe {
namespace {

using namespace std::chrono_literals;

using next_frame = result<std::optional<std::string>>;

/// How long a worker may take for one piece of a file.
constexpr auto piece_time = 30s;

class snippet_request final : public worker_request {
public:
  snippet_request(snippet code, bool checkpoint, sandbox::done_fn done)
    : code_{std::move(code)}, checkpoint_{checkpoint}, done_{std::move(done)} {}

  next_frame next(std::uint32_t id, worker::done* last) override {
    if (last != nullptr)
      return std::nullopt;
    return worker::run_frame(id, code_, checkpoint_);
  }

  void finish(request_end end) override {
    snippet_outcome o;
    if (end.reply)
      take(*end.reply, end, o);
    else
      o.end = end.lost;
    if (o.end == snippet_end::soft_timeout || !end.reply)
      o.reason = std::move(end.reason);
    o.restored = end.restored;
    o.logs = std::move(end.output);
    o.logs_dropped = end.output_dropped;
    o.usage = end.usage;
    done_(std::move(o));
  }

  time_point soft_deadline() const override { return code_.soft_deadline; }
  time_point hard_deadline(time_point) const override { return code_.hard_deadline; }
  bool checkpointed() const override { return checkpoint_; }
  bool takes_calls() const override { return true; }

private:
  static void take(worker::done& reply, const request_end& end, snippet_outcome& o) {
    o.end = reply.end;
    o.result = std::move(reply.result);
    o.is_final = reply.is_final;
    o.error = std::move(reply.error);
    o.unprotected = std::move(reply.unprotected);
    if (o.end == snippet_end::raised && end.interrupted && o.error
        && o.error->type == "KeyboardInterrupt")
      o.end = snippet_end::soft_timeout;
  }

  snippet code_;
  bool checkpoint_;
  sandbox::done_fn done_;
};

class put_request final : public worker_request {
public:
  put_request(sandbox_file file, sandbox::put_fn done)
    : file_{std::move(file)}, done_{std::move(done)} {}

  next_frame next(std::uint32_t id, worker::done* last) override {
    if (last != nullptr && (!last->failure.empty() || sent_ >= file_.bytes.size()))
      return std::nullopt;
    auto frame = worker::put_frame(id, file_, sent_);
    sent_ += worker::put_piece_bytes;
    return frame;
  }

  void finish(request_end end) override {
    if (!end.reply)
      done_(fail(errc::unavailable, std::move(end.reason)));
    else if (!end.reply->failure.empty())
      done_(fail(end.reply->kind, std::move(end.reply->failure)));
    else
      done_({});
  }

  time_point hard_deadline(time_point now) const override { return after(now, piece_time); }
  bool takes_output() const override { return false; }

private:
  sandbox_file file_;
  std::size_t sent_ = 0;
  sandbox::put_fn done_;
};

class get_request final : public worker_request {
public:
  get_request(std::string path, std::size_t max_bytes, const sandbox_limits& limits,
              sandbox::got_fn done)
    : path_{std::move(path)}, max_bytes_{max_bytes}, piece_bytes_{worker::get_piece_bytes(limits)},
      done_{std::move(done)} {}

  next_frame next(std::uint32_t id, worker::done* last) override {
    if (last != nullptr) {
      if (!last->failure.empty())
        return std::nullopt;
      auto size = last->data ? last->data->size() : 0;
      if (!last->data || size > piece_bytes_)
        return fail(errc::corrupt, "a piece of a file of another size");
      bytes_ += *last->data;
      too_large_ = std::max<std::uint64_t>(bytes_.size(), last->file_bytes) > max_bytes_;
      if (too_large_ || size < piece_bytes_)
        return std::nullopt;
    }
    return worker::get_frame(id, path_, bytes_.size(), piece_bytes_);
  }

  void finish(request_end end) override {
    if (!end.reply)
      done_(fail(errc::unavailable, std::move(end.reason)));
    else if (!end.reply->failure.empty())
      done_(fail(end.reply->kind, std::move(end.reply->failure)));
    else if (too_large_)
      done_(fail(errc::over_budget,
                 path_ + ": larger than the " + std::to_string(max_bytes_) + " bytes allowed"));
    else
      done_(std::move(bytes_));
  }

  time_point hard_deadline(time_point now) const override { return after(now, piece_time); }
  bool takes_output() const override { return false; }

private:
  std::string path_;
  std::size_t max_bytes_;
  std::size_t piece_bytes_;
  std::string bytes_;
  bool too_large_ = false;
  sandbox::got_fn done_;
};

class shell_request final : public worker_request {
public:
  shell_request(shell_command command, sandbox::shell_fn done)
    : command_{std::move(command)}, done_{std::move(done)} {}

  next_frame next(std::uint32_t id, worker::done* last) override {
    if (last == nullptr)
      return worker::shell_frame(id, command_);
    if (last->failure.empty() && !last->exit)
      return fail(errc::corrupt, "a command without an end");
    return std::nullopt;
  }

  void finish(request_end end) override {
    shell_outcome o;
    if (!end.reply) {
      o.end = shell_end::lost;
      o.sandbox_end = end.lost;
      o.reason = std::move(end.reason);
    } else if (!end.reply->exit) {
      o.end = shell_end::not_started;
      o.reason = std::move(end.reply->failure);
    } else {
      take(*end.reply->exit, end, o);
    }
    o.output = std::move(end.output);
    o.output_dropped = end.output_dropped;
    o.usage = end.usage;
    done_(std::move(o));
  }

  time_point soft_deadline() const override { return command_.soft_deadline; }
  time_point hard_deadline(time_point) const override { return command_.hard_deadline; }
  bool stops_at_flood() const override { return true; }

private:
  static void take(const worker::command_exit& exit, request_end& end, shell_outcome& o) {
    o.status = exit.signal != 0 ? exit.signal : exit.status;
    if (exit.killed && end.interrupted) {
      o.end = end.flooded ? shell_end::output_limit : shell_end::soft_timeout;
      o.reason = std::move(end.reason);
    } else {
      o.end = exit.signal != 0 ? shell_end::signalled : shell_end::exited;
    }
  }

  shell_command command_;
  sandbox::shell_fn done_;
};

}  // namespace

std::unique_ptr<worker_request> make_snippet_request(snippet code, bool checkpoint,
                                                     sandbox::done_fn done) {
  return std::make_unique<snippet_request>(std::move(code), checkpoint, std::move(done));
}

std::unique_ptr<worker_request> make_put_request(sandbox_file file, sandbox::put_fn done) {
  return std::make_unique<put_request>(std::move(file), std::move(done));
}

std::unique_ptr<worker_request> make_get_request(std::string path, std::size_t max_bytes,
                                                 const sandbox_limits& limits,
                                                 sandbox::got_fn done) {
  return std::make_unique<get_request>(std::move(path), max_bytes, limits, std::move(done));
}

std::unique_ptr<worker_request> make_shell_request(shell_command command, sandbox::shell_fn done) {
  return std::make_unique<shell_request>(std::move(command), std::move(done));
}

std::string_view to_string(shell_end end) noexcept {
  switch (end) {
  case shell_end::exited:
    return "exited";
  case shell_end::signalled:
    return "signalled";
  case shell_end::soft_timeout:
    return "soft_timeout";
  case shell_end::output_limit:
    return "output_limit";
  case shell_end::not_started:
    return "not_started";
  case shell_end::lost:
    return "lost";
  }
  return "lost";
}

}  // namespace troupe
