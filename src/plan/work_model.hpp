// SPDX-License-Identifier: Apache-2.0
// How much work a point of a sweep is, before it is captured: from cases of the same network that were.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "core/case_spec.hpp"

namespace strata::plan {

// Of one iteration.
struct Work {
  double flops = 0;         // of a forward pass, as graph/flops.hpp counts them; 0: not counted
  double moving_bytes = 0;  // activations and inputs: what grows with batch and images
  double weight_bytes = 0;
};

// Of a captured case, from bundle.json with its counts (plan::Bundle::info).
Work work_of(const nlohmann::json& info);

// Where in a sweep.
struct SweepPosition {
  core::Mode mode = core::Mode::infer;
  std::optional<std::int64_t> batch;                          // nullopt: the network's own
  std::optional<std::pair<std::int64_t, std::int64_t>> size;  // of images; nullopt: its own, or none
};
SweepPosition sweep_position(const core::Case& question);  // of a captured case
SweepPosition sweep_position(const core::CaseSpec& spec);  // of one that is planned

class WorkModel {
 public:
  void add(const SweepPosition& at, const Work& work);
  bool empty() const { return seen_.empty(); }

  // By the case that differs least in batch and pixels, of the same mode where there is one, times the ratio of both:
  // right for convolutions, too little for attention, whose products grow with the square of the pixels. nullopt: none.
  std::optional<Work> expected(const SweepPosition& at) const;

 private:
  std::vector<std::pair<SweepPosition, Work>> seen_;
};

}  // namespace strata::plan
