// SPDX-License-Identifier: Apache-2.0
// What a comparison or a sweep would run and what it is likely to take, from runs of the same network if the store has
// one.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/prepare.hpp"

namespace strata::engine {

struct PlannedCase {
  core::CaseSpec spec;
  core::Case question;               // as far as it is known before it is captured
  std::vector<std::string> levels;   // that run it
  std::vector<std::string> without;  // others, with why
  double seconds = 0;
  std::optional<double> bytes;  // of a sweep: that its levels need together; nullopt: nothing tells
};

struct CasePlan {
  std::vector<PlannedCase> cases;
  std::vector<std::string> passes;  // that look at them, in their order
  std::vector<std::string> notes;   // each once; the last says where the seconds come from
  double seconds = 0;
  double bytes = 0;  // on disk, of a case that is not captured yet; 0: not known

  void note(const std::string& text);
};

// A comparison's cases. `store`: need not exist.
CasePlan plan_comparison(const Prepared& ready, const std::filesystem::path& store);
// A sweep's points. `events`: a network of which no case was captured yet is captured once, at the smallest corner, so
// that its operations are known; nullptr: it is not.
CasePlan plan_sweep(const Prepared& ready, const SweepRequest& request, const std::filesystem::path& store,
                    EventSink* events);

}  // namespace strata::engine
