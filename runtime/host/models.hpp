#pragma once
// From settings to the models of a runtime: where they are, how they are asked, what stands before
// them.

#include "config/model_name.hpp"
#include "config/options.hpp"
#include "runtime/host/engine.hpp"

#include <memory>
#include <string>

namespace troupe {

/// The same options for another model: address, key and headers are of one provider, and are kept
/// only when both models are.
[[nodiscard]] model_options for_model(model_options m, const std::string& name);

/// `m` with those of `own` that are of a model, of an agent beside or below the one of `m`. Another
/// model has no fallbacks but its own.
/// Errors  assign's.
[[nodiscard]] result<model_options> with_own_model(model_options m,
                                                   const std::vector<option_input>& own);

/// What the options name. Nobody is called when a recording is played: no key is needed.
/// Errors  those of parse_model_name.
[[nodiscard]] result<model_target> target_of(const model_options& m, const env_lookup& env);

/// The settings' model with its other addresses, its fallbacks and all their prices. Reads the
/// keys' variables, the mock's script and the price file now, so that a missing one is found before
/// anything starts.
/// Errors  those of parse_model_name, parse_url and mock_script::parse, with the option named; the
///         proxy or the CA file that an endpoint needs cannot be used; invalid_argument: a fallback
///         that speaks another wire format, or a limit on money and a model that has no price.
[[nodiscard]] result<engine_model> model_from(const settings& s, const env_lookup& env);

/// The cache or recording that the settings ask for, to stand before all models; null: none. Makes
/// the file, so it comes after what may still be refused.
/// Errors  invalid_argument: more than one of them; those of opening the file.
[[nodiscard]] result<std::shared_ptr<reply_shelf>> shelf_from(const settings& s,
                                                              const env_lookup& env);

/// Limits, proxies and roots of all connections to models.
[[nodiscard]] http_client_limits http_from(const settings& s, const env_lookup& env);

/// Puts what all may spend, and the money of the price file, into `into`.
/// Errors  read_prices'.
[[nodiscard]] result<void> add_budget(const settings& s, engine_options& into);

/// The limits on the model that may change while it is in use.
[[nodiscard]] model_tune limits_from(const settings& s);

}  // namespace troupe
