// SPDX-License-Identifier: Apache-2.0
#include "cli/limits.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "cli/option.hpp"

namespace strata::cli {

void add_limits(CLI::App& verb) {
  const auto add = [&](const char* option, const char* variable, const char* about) {
    return positive(verb.add_option_function<double>(
        option, [variable](const double& limit) { ::setenv(variable, fmt::format("{}", limit).c_str(), 1); }, about));
  };
  if (auto* images = verb.get_option_no_throw("--input-from"))
    add("--max-megapixels", "STRATA_MAX_MEGAPIXELS", "largest image that --input-from may hold (default: 100)")
        ->needs(images);
  add("--max-expansion", "STRATA_MAX_EXPANSION",
      "how many times its size a .pt, .pt2 or .npz file may unpack to, if that is above 64 MB (default: 20)");
}

}  // namespace strata::cli
