// SPDX-License-Identifier: Apache-2.0
// What a case of mode train adds to the loop: the optimiser of a request and its schedule, and the count of steps.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "strata/level.hpp"

namespace strata {

// The optimiser of a case or a request (docs/bundle.md, "Mode train"). Null and fields left out take their defaults.
// Throws bad_request, or unsupported for a name that is none of core::optimiser_names.
Optimiser read_optimiser(const nlohmann::json& object);

// Passes iterations on to a level, gives each step its learning rate and counts it.
class Stepper final : public Iterated {
 public:
  Stepper(Level& level, Trainable& trained) : level_(level), trained_(trained) {}

  // A fresh optimiser at step 0: `optimiser`, or the one before once more.
  void start(const Optimiser& optimiser);
  void restart() { start(Optimiser(optimiser_)); }
  void set_mode(bool training, bool dropout);
  void go_to(std::int64_t step);
  bool training() const { return training_; }
  std::int64_t steps() const { return steps_; }
  double next_rate() const { return core::learning_rate(optimiser_, steps_); }

  void set_input(std::span<const HostTensor> inputs) override { level_.set_input(inputs); }
  void run() override;
  void run_marked(Profiled& profiled, const PhaseEnded& ended);
  void wait() override { level_.wait(); }
  void outputs(std::vector<HostTensor>& results) override { level_.outputs(results); }

 private:
  void prepare_step();

  Level& level_;        // the same level
  Trainable& trained_;  // by what trains it
  Optimiser optimiser_;
  bool training_ = true;
  std::int64_t steps_ = 0;
  double rate_ = 0;  // what the level has
};

}  // namespace strata
