// SPDX-License-Identifier: Apache-2.0
// What is known of a case before anything of it is captured: for plans that are printed.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/prepare.hpp"
#include "plan/bundle.hpp"

namespace strata::engine {

// A spec as a bundle that is not captured yet: its question, as far as it is known.
plan::Bundle foreseen(const core::CaseSpec& spec);

// Bytes that a captured case of this network has on disk; 0: none is captured.
double captured_bytes(const std::filesystem::path& cache, const std::string& model);

// Levels that run a case, and why others do not.
struct Participants {
  std::vector<std::string> names;
  std::vector<std::string> without;
};
Participants participants_of(const Prepared& ready, const plan::Bundle& bundle);

}  // namespace strata::engine
