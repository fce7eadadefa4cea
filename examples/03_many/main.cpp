// A thousand runs at once, without a thread for each: what ends calls back.
// usage: 03_many MODEL [COUNT], e.g. mock/mock.json beside this file
#include <troupe/runtime.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <latch>
#include <string>

int main(int argc, char** argv) {
  const auto count = argc > 2 ? std::stoul(argv[2]) : 1'000ul;
  std::latch ended{static_cast<std::ptrdiff_t>(count)};
  std::atomic<unsigned long> answered{0};
  std::atomic<unsigned long long> tokens{0};

  auto rt = troupe::runtime::start({.model = argc > 1 ? argv[1] : "mock/mock.json",
                                    .max_concurrency = 1'000,
                                    .options = {{"max_tokens_total", "10000000"}}});
  if (!rt)
    return std::fprintf(stderr, "%s\n", rt.error().detail.c_str()), 1;
  auto square = troupe::make_tool("square", "Squares a number.", {{"x", "the number"}},
                                  [](long long x) { return x * x; });
  auto agent = rt->define({.name = "squarer", .tools = {square}, .kind = "tool"});
  if (!agent)
    return std::fprintf(stderr, "%s\n", agent.error().detail.c_str()), 1;

  auto begun = std::chrono::steady_clock::now();
  for (unsigned long i = 0; i < count; ++i)
    static_cast<void>(rt->submit(
      *agent, "Square " + std::to_string(i) + ".", {.on_end = [&](const troupe::run_outcome& o) {
        answered += o.ok();
        tokens += o.input_tokens + o.output_tokens;
        if (!o.ok())
          std::fprintf(stderr, "%s: %s\n", o.end.c_str(), o.error.c_str());
        ended.count_down();
      }}));
  ended.wait();
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  std::printf("%lu of %lu answered, %llu tokens, %.0f runs/s\n", answered.load(), count,
              tokens.load(), static_cast<double>(count) / took.count());
  return answered == count ? 0 : 1;
}
