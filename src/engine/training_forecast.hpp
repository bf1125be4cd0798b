// SPDX-License-Identifier: Apache-2.0
// What a training is likely to take at each level: from steps that the store has measured of this case on this machine,
// else from the network's operations and the machine's rate.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/training_plan.hpp"
#include "plan/bundle.hpp"

namespace strata::engine {

struct LevelForecast {
  std::string level;
  std::optional<double> step_s;  // nullopt: nothing tells
  std::string source;            // where it comes from
  double seconds = 0;            // all repeats
};

struct TrainingForecast {
  plan::TrainingWork work;
  std::vector<LevelForecast> levels;
  std::vector<std::string> without;  // levels that cannot, and why
  std::string scaled;                // what --scale cut, in words; empty: nothing
  std::string note;                  // about what is not known
  double seconds = 0, bytes = 0;     // bytes on disk; 0: not known
  bool known = true;                 // false: some level's step is not, and `seconds` is without it

  std::string source() const;  // of all levels' steps, in a few words
};

// Of a network that is captured and a set whose images are counted (`work`). `store`, which may know steps: need not
// exist.
TrainingForecast forecast_training(const TrainingPlan& plan, const Prepared& ready, const std::filesystem::path& store,
                                   const plan::TrainingWork& work, const plan::Bundle& bundle, const std::string& set);

// The same before anything is opened or captured; a network that the store knows nothing of is captured once, at
// batch 1.
TrainingForecast forecast_training(TrainingPlan plan, const Prepared& ready, const std::filesystem::path& store,
                                   EventSink& events);

// What a training would refuse of the network beside the images, with nothing captured.
Result<void> check_network(const TrainingPlan& plan, const Prepared& ready, EventSink& events);

}  // namespace strata::engine
