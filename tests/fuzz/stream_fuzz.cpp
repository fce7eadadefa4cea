// A provider's answer to a streamed request: the first byte chooses the wire format and how the
// rest is cut. Whatever it is, the outcome does not depend on the cuts.

#include "runtime/model/reply_stream.hpp"
#include "tests/fuzz/fuzz_support.hpp"

#include <algorithm>
#include <array>
#include <memory>

using namespace troupe;

namespace {

const codec& format_of(std::size_t choice) {
  static const std::array formats = {make_codec({}),
                                     make_codec({.wire = wire_format::openai_responses}),
                                     make_codec({.wire = wire_format::anthropic})};
  return *formats[choice % formats.size()];
}

model_outcome read(const codec& format, std::string_view bytes, std::size_t piece) {
  model_settings settings;
  settings.stop = {"</code>", "Observation:"};
  reply_stream s{format, std::make_shared<model_settings>(std::move(settings))};
  std::vector<model_delta> seen;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size())))
    for (auto& d : s.feed(bytes.substr(0, piece)))
      seen.push_back(std::move(d));
  auto outcome = s.finish({}, seen);
  for (auto& d : seen)
    fuzz::require(is_utf8(d.text) && is_utf8(d.tool), "what viewers see is UTF-8");
  return outcome;
}

/// A reply goes on into the conversation, and a failure to the user.
void require_sound(const codec& format, const model_outcome& outcome) {
  if (!outcome) {
    constexpr std::size_t longest = 4096;
    auto& detail = outcome.error().detail;
    fuzz::require(!detail.empty() && detail.size() <= longest && is_utf8(detail),
                  "a failure's line is short UTF-8");
    return;
  }
  fuzz::require(outcome->text.find("</code>") == std::string::npos, "the text ends at a stop");
  transcript t{format.encoder()};
  t.append({.from = role::user, .content = "x"});
  t.append({.from = role::assistant,
            .content = outcome->text,
            .tool_calls = outcome->tool_calls,
            .kept = outcome->kept});
  model_request q{std::make_shared<model_settings>(), t.view(), {}, 0, never};
  auto e = format.encode(q, delivery::whole);
  constexpr json_limits wide{static_cast<std::size_t>(-1), 256};
  fuzz::require(parse_json(e.head + e.messages.text() + e.tail, wide).has_value(),
                "a reply goes back as JSON");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0)
    return 0;
  auto& format = format_of(data[0]);
  auto bytes = fuzz::text_of(data + 1, size - 1);
  auto whole = read(format, bytes, bytes.size() + 1);
  auto cut = read(format, bytes, 1 + data[0] % 7);
  fuzz::require(whole.has_value() == cut.has_value(), "the outcome does not depend on the cuts");
  fuzz::require(!whole || *whole == *cut, "the reply does not depend on the cuts");
  require_sound(format, whole);
  return 0;
}
