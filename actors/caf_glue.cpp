#include "actors/caf_glue.hpp"

#include "actors/messages.hpp"

#include <caf/init_global_meta_objects.hpp>
#include <caf/sec.hpp>

#include <exception>
#include <mutex>

namespace troupe::glue {

void init_types() {
  static std::once_flag once;
  std::call_once(once, [] {
    caf::init_global_meta_objects<caf::id_block::troupe>();
    caf::core::init_global_meta_objects();
  });
}

void configure(caf::actor_system_config& cfg, std::size_t threads) {
  cfg.set("caf.scheduler.max-threads", threads);
  cfg.set("caf.scheduler.max-throughput", std::size_t{50});
  // A worker without work looks for some every 50 us, 500 times by default, before it waits to be
  // woken: where replies are a millisecond apart, that is most of a model call's CPU.
  cfg.set("caf.work-stealing.moderate-poll-attempts", std::size_t{4});
  cfg.set("caf.work-stealing.moderate-steal-interval", std::size_t{1});
}

void house_rules(caf::scheduled_actor* self) {
  self->set_default_handler(caf::drop);
  self->set_exception_handler([](std::exception_ptr& thrown) -> caf::error {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& e) {
      return to_caf({errc::internal, std::string{"exception: "} + e.what()});
    } catch (...) {
      return to_caf({errc::internal, "exception of an unknown type"});
    }
  });
}

// Ours travels inside CAF's runtime_error as its context: (code name, detail). CAF's own errors
// come back as unavailable when the receiver is gone, else as internal.
caf::error to_caf(const error& e) {
  return caf::make_error(caf::sec::runtime_error, std::string{to_string(e.code)}, e.detail);
}

error from_caf(const caf::error& e) {
  if (e == caf::sec::runtime_error && e.context().match_elements<std::string, std::string>())
    return {errc_from(e.context().get_as<std::string>(0)), e.context().get_as<std::string>(1)};
  if (e == caf::sec::request_receiver_down || e == caf::sec::invalid_argument
      || e == caf::sec::broken_promise)
    return {errc::unavailable, "the actor asked is not there: " + caf::to_string(e)};
  return {errc::internal, caf::to_string(e)};
}

bool is_normal_exit(const caf::error& reason) {
  return !reason || reason == caf::exit_reason::normal || reason == caf::exit_reason::user_shutdown;
}

}  // namespace troupe::glue
