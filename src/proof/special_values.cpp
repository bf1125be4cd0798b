// SPDX-License-Identifier: Apache-2.0
#include "proof/special_values.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "proof/difference.hpp"

namespace strata::proof {

namespace fs = std::filesystem;

fs::path special_inputs(const fs::path& bundle) {
  return bundle / "special.safetensors";
}

fs::path special_answers(const fs::path& bundle) {
  return bundle / "reference" / "special.safetensors";
}

std::optional<std::string> lost_specials(const SafeTensors& expected, const SafeTensors& actual) {
  constexpr std::array<const char*, 2> kinds{"NaN", "infinity"};
  std::string sentence;
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    std::size_t lost = 0, all = 0;
    for (const std::string& name : expected.names()) {
      const TensorView &wanted = *expected.find(name), *got = actual.find(name);
      if (!name.starts_with(fmt::format("{}/", kind)) || !is_floating(wanted.dtype)) continue;
      if (!got || got->shape != wanted.shape) return std::nullopt;
      in_chunks(*got, wanted, [&](std::size_t, auto level, auto eager) {
        for (std::size_t i = 0; i < eager.size(); ++i) {
          if (std::isfinite(eager[i])) continue;
          ++all;
          if (std::isfinite(level[i])) ++lost;
        }
      });
    }
    if (lost > 0)
      sentence += fmt::format("{}drops {}: {} of {} values are numbers where eager's are NaN or infinite",
                              sentence.empty() ? "" : "; ", kinds[kind], lost, all);
  }
  return sentence;
}

}  // namespace strata::proof
