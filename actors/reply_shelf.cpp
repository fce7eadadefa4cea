#include "actors/reply_shelf.hpp"

#include "runtime/core/log.hpp"
#include "runtime/model/reply_json.hpp"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <sstream>

namespace troupe {
namespace {

std::int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
           std::chrono::system_clock::now().time_since_epoch())
    .count();
}

class cache_shelf final : public reply_shelf {
public:
  cache_shelf(std::unique_ptr<reply_cache> store, cache_use use, std::chrono::seconds max_age)
    : store_{std::move(store)}, use_{use}, max_age_{max_age} {}

  std::optional<model_outcome> find(const request_identity& request, std::uint32_t draw) override {
    if (use_ == cache_use::refresh)
      return std::nullopt;
    auto since = max_age_.count() > 0 ? unix_seconds() - max_age_.count() : 0;
    auto text = store_->find(request.key(), draw, since);
    if (!text) {
      complain(text.error());
      return std::nullopt;
    }
    if (!*text)
      return std::nullopt;
    auto parsed = parse_json(**text);
    auto reply = parsed ? reply_from_json(*parsed) : fail(parsed.error());
    if (!reply) {
      complain(reply.error());
      return std::nullopt;
    }
    reply->attempts = 0;
    return model_outcome{*std::move(reply)};
  }

  void keep(const request_identity& request, std::uint32_t draw,
            const model_outcome& outcome) override {
    if (use_ == cache_use::read || !outcome || outcome->substitute
        || outcome->finish_reason == "content_filter")
      return;
    auto kept = store_->keep(request.key(), draw, dump_json(to_json(*outcome)), unix_seconds());
    if (!kept)
      complain(kept.error());
  }

  void flush() override {
    if (auto done = store_->commit(); !done)
      complain(done.error());
  }

private:
  void complain(const error& e) {
    if (!std::exchange(complained_, true))
      log::warn("the cache of replies fails, models are asked instead: " + e.detail);
  }

  std::unique_ptr<reply_cache> store_;
  cache_use use_;
  std::chrono::seconds max_age_;
  bool complained_ = false;
};

struct close_file {
  void operator()(std::FILE* f) const noexcept { std::fclose(f); }
};
using file = std::unique_ptr<std::FILE, close_file>;

class recording_shelf final : public reply_shelf {
public:
  recording_shelf(file out, std::string path, std::vector<std::string> secrets)
    : out_{std::move(out)}, path_{std::move(path)}, secrets_{std::move(secrets)} {}

  std::optional<model_outcome> find(const request_identity&, std::uint32_t) override {
    return std::nullopt;
  }

  void keep(const request_identity& request, std::uint32_t, const model_outcome& outcome) override {
    if (!outcome && outcome.error().kind == failure_class::cancelled)
      return;  // ours, not the model's
    write(cassette_line(request, outcome, secrets_));
  }

  void flush() override {
    if (std::fflush(out_.get()) != 0)
      complain();
  }

  void hide(const std::vector<std::string>& secrets) override {
    secrets_.insert(secrets_.end(), secrets.begin(), secrets.end());
  }

  void write(const std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), out_.get()) != text.size())
      complain();
  }

private:
  void complain() {
    auto number = errno;
    if (!std::exchange(complained_, true))
      log::error("the recording is not whole: " + path_ + ": " + errno_text(number));
  }

  file out_;
  std::string path_;
  std::vector<std::string> secrets_;
  bool complained_ = false;
};

class playing_shelf final : public reply_shelf {
public:
  explicit playing_shelf(std::unique_ptr<cassette_player> player) : player_{std::move(player)} {}

  std::optional<model_outcome> find(const request_identity& request, std::uint32_t) override {
    return player_->play(request);
  }

  void keep(const request_identity&, std::uint32_t, const model_outcome&) override {}
  void flush() override {}
  void hide(const std::vector<std::string>& secrets) override { player_->hide(secrets); }

private:
  std::unique_ptr<cassette_player> player_;
};

class locked_shelf final : public reply_shelf {
public:
  explicit locked_shelf(std::unique_ptr<reply_shelf> shelf) : shelf_{std::move(shelf)} {}

  std::optional<model_outcome> find(const request_identity& request, std::uint32_t draw) override {
    std::lock_guard lock{mutex_};
    return shelf_->find(request, draw);
  }

  void keep(const request_identity& request, std::uint32_t draw,
            const model_outcome& outcome) override {
    std::lock_guard lock{mutex_};
    shelf_->keep(request, draw, outcome);
  }

  void flush() override {
    std::lock_guard lock{mutex_};
    shelf_->flush();
  }

  void hide(const std::vector<std::string>& secrets) override {
    std::lock_guard lock{mutex_};
    shelf_->hide(secrets);
  }

private:
  std::mutex mutex_;
  std::unique_ptr<reply_shelf> shelf_;
};

}  // namespace

std::unique_ptr<reply_shelf> make_locked_shelf(std::unique_ptr<reply_shelf> shelf) {
  return std::make_unique<locked_shelf>(std::move(shelf));
}

std::unique_ptr<reply_shelf> make_cache_shelf(std::unique_ptr<reply_cache> store, cache_use use,
                                              std::chrono::seconds max_age) {
  return std::make_unique<cache_shelf>(std::move(store), use, max_age);
}

result<std::unique_ptr<reply_shelf>> make_recording_shelf(const std::string& path,
                                                          std::vector<std::string> secrets) {
  file out{std::fopen(path.c_str(), "wxe")};
  if (!out && errno == EEXIST)
    return fail(errc::denied, "the recording '" + path
                                + "' is there already: name another file, or"
                                  " remove it");
  if (!out)
    return fail(errc::denied, "the recording '" + path + "' cannot be made: " + errno_text(errno));
  auto shelf = std::make_unique<recording_shelf>(std::move(out), path, std::move(secrets));
  shelf->write(cassette_head());
  shelf->flush();
  return shelf;
}

result<std::unique_ptr<reply_shelf>> make_playing_shelf(const std::string& path, cassette_match how,
                                                        std::vector<std::string> secrets) {
  std::ifstream in{path, std::ios::binary};
  if (!in)
    return fail(errc::not_found,
                "the recording '" + path + "' cannot be read: " + errno_text(errno));
  std::ostringstream text;
  text << in.rdbuf();
  auto player = cassette_player::load(text.view(), path, how, std::move(secrets));
  if (!player)
    return fail(player.error());
  return std::make_unique<playing_shelf>(*std::move(player));
}

}  // namespace troupe
