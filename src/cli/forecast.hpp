// SPDX-License-Identifier: Apache-2.0
// What a training is likely to take at each level: from steps that the store has measured of this case on this machine,
// else from the network's operations and the machine's rate.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/train.hpp"
#include "engine/foreseen.hpp"
#include "plan/training_time.hpp"

namespace strata::cli {

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

// What is asked about the case: its question as far as it is known, data named; the size of images, if it is known.
struct Foretold {
  core::Case question;
  std::optional<std::int64_t> height, width;
  double weights_bytes = 0, image_bytes = 0;
  std::function<Result<double>()> forward_flops;  // of one image; asked only where the store does not know a step
};

// `a`: scaled already (scale_training).
TrainingForecast forecast(const TrainArguments& a, const engine::Prepared& ready, const plan::TrainingWork& work,
                          const Foretold& about, const engine::Participants& who);

// The same before anything is opened or captured; a network that the store knows nothing of is captured once, at
// batch 1.
TrainingForecast forecast(const TrainArguments& a, engine::Prepared& ready);

// `train --dry-run`: the forecast, once the network takes the images; the exit code. Error: what a training would
// refuse of both.
Result<int> print_training_plan(const TrainArguments& a, engine::Prepared& ready);

// "took 4.1 min, predicted 3.2 min (22% too short)".
std::string against_forecast(double predicted_s, double took_s);

// Bytes of the weights of a captured network; 0: none.
double weights_bytes(const std::filesystem::path& bundle);

}  // namespace strata::cli
