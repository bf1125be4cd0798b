// SPDX-License-Identifier: Apache-2.0
// What the conformance suite of `strata level check` is run on.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "common/places.hpp"
#include "common/result.hpp"
#include "level/conformance.hpp"

namespace strata::engine {

struct LevelToCheck {
  std::string path;    // a level's folder, its id, or any program
  std::string bundle;  // empty: a tiny network of the suite's own
  std::vector<std::string> arguments;
  std::chrono::milliseconds timeout{60'000};  // of one request
};

// Ready to be started, its environment installed; files go to `scratch`. Errors: there is no such level, its
// environment lacks something, the bundle is none of inference.
Result<level::Subject> subject_of(const LevelToCheck& asked, const Installation& place,
                                  const std::filesystem::path& scratch);

}  // namespace strata::engine
