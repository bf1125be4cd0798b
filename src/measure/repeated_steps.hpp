// SPDX-License-Identifier: Apache-2.0
// Training steps of a level, judged by the same steps repeated from the state before them.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "proof/train_checks.hpp"
#include "session/session.hpp"

namespace strata::measure {

using session::Session;
using session::TrainState;
using session::Try;

struct RepeatedSteps {
  TrainState after;
  std::vector<double> losses;  // of each step
};

struct StepLoss {
  std::size_t step = 0;  // since the state before
  double loss = 0;
};

struct CompletedSteps {
  const TrainState* before;      // its file, and how many steps of the optimiser it has behind it
  const SafeTensors* after;      // the state they led to
  std::vector<StepLoss> losses;  // those that are known
};

using Repeat = std::function<Try<RepeatedSteps>(const std::filesystem::path&)>;

// nullopt: rounding carries too far over these steps to judge by them.
using StepsVerdict = std::optional<proof::OutputVerdict>;

// `repeat`: makes the steps again from the state in a file. It is called for the state before, and again with every
// weight of it moved by a unit in the last place: what rounding may do (proof/late_step.hpp). Since one such draw may
// miss a value near a kink that another meets, steps are refused only where several draws refuse them, and further ones
// do not lead there either (check_late_step's `along`); the verdict is then that of the draw that allows most.
// `scratch`: a file that is written, and removed; `spread`: of a level that does not repeat itself.
Try<StepsVerdict> judge_steps(const std::filesystem::path& scratch, const proof::TrainReference& reference,
                              const CompletedSteps& completed, double spread, const Repeat& repeat);

}  // namespace strata::measure
