// SPDX-License-Identifier: Apache-2.0
#include "engine/events.hpp"

#include <fmt/format.h>

namespace strata::engine {

bool ProgressPace::is_due(const std::string& doing) {
  const auto now = std::chrono::steady_clock::now();
  auto end = doing.find(", round");
  for (auto at = doing.find(", "); end == std::string::npos && at != std::string::npos; at = doing.find(", ", at + 1))
    if (at + 2 < doing.size() && doing[at + 2] >= '0' && doing[at + 2] <= '9') end = at;
  auto phase = doing.substr(0, end);
  if (last_ && phase == phase_ && now - *last_ < interval_) return false;
  phase_ = std::move(phase);
  last_ = now;
  return true;
}

plan::CaptureOptions capture_options(const plan::Options& options, EventSink& events, const plan::Bundle* strict) {
  events.progress(fmt::format("capturing {}", options.model), -1);
  return {.progress =
              [&events, &options](const std::string& what) {
                events.progress(fmt::format("capturing {}: {}", options.model, what), -1);
              },
          .note = [&events](const std::string& sentence) { events.note(sentence); },
          .fresh = options.fresh,
          .timeout_s = options.timeout_s,
          .memory_limit_gib = options.memory_limit_gib,
          .strict = strict};
}

}  // namespace strata::engine
