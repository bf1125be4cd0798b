// SPDX-License-Identifier: Apache-2.0
#include "cli/capturing.hpp"

#include <fmt/format.h>

#include "cli/option.hpp"
#include "common/duration.hpp"

namespace strata::cli {

void add_capture_options(CLI::App& verb, plan::Options& options, bool timeout) {
  verb.add_flag("--fresh", options.fresh, "capture the network anew, whatever is cached");
  if (!timeout) return;
  duration(verb.add_option_function<std::string>(
      "--timeout", [&options](const std::string& text) { options.timeout_s = seconds_of(text); },
      "longest time that building and capturing the network may take, as 60s or 2m (default: 1h)"));
}

plan::Wishes wishes_of(const plan::Options& options, ProgressLine& line, const plan::Bundle* strict) {
  line.status(fmt::format("capturing {}", options.model), -1);
  return {.progress =
              [&line, &options](const std::string& what) {
                line.status(fmt::format("capturing {}: {}", options.model, what), -1);
              },
          .note = [&line](const std::string& sentence) { line.note(sentence); },
          .fresh = options.fresh,
          .timeout_s = options.timeout_s,
          .strict = strict};
}

}  // namespace strata::cli
