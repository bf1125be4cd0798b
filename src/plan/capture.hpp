// SPDX-License-Identifier: Apache-2.0
// Runs `python -m capture` (docs/bundle.md).
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/places.hpp"
#include "core/case_spec.hpp"
#include "plan/environment.hpp"

namespace strata::plan {

struct Capture {
  core::CaseSpec spec;
  std::filesystem::path out;                          // in the cache; a log lies beside it meanwhile
  std::filesystem::path strict;                       // the bundle of the same case in fp32; empty: not given
  bool by_state = false;                              // the folder's name gets a hash of what the network came from
  std::optional<double> timeout_s, memory_limit_gib;  // the limit: of a level's process, for what may be too large
  std::function<void(const std::string&)> progress;
};

// The bundle's folder. Error: what the capture said, or how it ended.
Result<std::filesystem::path> run_capture(const Capture& capture, const Installation& place,
                                          const Environment& environment);

// Captures nothing: the inputs that the network takes, as bundle.json lists them. Error: what a capture would refuse of
// the spec.
Result<nlohmann::json> check_capture(const Capture& capture, const Installation& place, const Environment& environment);

}  // namespace strata::plan
