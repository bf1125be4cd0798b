// SPDX-License-Identifier: Apache-2.0
// The name that a person probably meant.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace strata {

// Insertions, deletions, substitutions and swaps of neighbours that turn a into b (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b);

// The known name closest to `got`, without regard to case; nullopt when none is close enough to be worth suggesting.
std::optional<std::string> nearest(std::string_view got, const std::vector<std::string>& known);

// Wrong usage: "--device gpu: unknown (did you mean 'cpu'?); allowed: cpu, cuda".
Error unknown_value(const std::string& option, const std::string& got, const std::vector<std::string>& allowed);

// Wrong usage: "--batch 0: allowed: 1 to 4096". `got`: as written.
Error not_allowed(const std::string& option, const std::string& got, const std::string& allowed, std::string hint = {});

// What stands where one of these words should.
ErrorFacts among(std::string where, const std::string& got, const std::vector<std::string>& allowed);

}  // namespace strata
