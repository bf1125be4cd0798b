// SPDX-License-Identifier: Apache-2.0
#include "engine/events.hpp"

#include <fmt/format.h>

namespace strata::engine {

plan::Wishes wishes_of(const plan::Options& options, EventSink& events, const plan::Bundle* strict) {
  events.progress(fmt::format("capturing {}", options.model), -1);
  return {.progress =
              [&events, &options](const std::string& what) {
                events.progress(fmt::format("capturing {}: {}", options.model, what), -1);
              },
          .note = [&events](const std::string& sentence) { events.note(sentence); },
          .fresh = options.fresh,
          .timeout_s = options.timeout_s,
          .strict = strict};
}

}  // namespace strata::engine
