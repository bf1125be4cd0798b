// SPDX-License-Identifier: Apache-2.0
// Single steps of a level from states of the driver's own, of which its proof is made (train.hpp).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "measure/participant.hpp"
#include "proof/train_checks.hpp"

namespace strata::measure {

// A file of the driver's own that a worker loads as a state; removed at the end.
class StateFile {
 public:
  StateFile(const Session& session, const std::vector<std::pair<std::string, TensorView>>& tensors)
      : path_(session.new_file()) {
    if (auto written = write_safetensors(path_, tensors); !written) error_ = worker::failed_by(written.error());
  }
  ~StateFile() {
    std::error_code ec;
    std::filesystem::remove(path_, ec);
  }
  StateFile(const StateFile&) = delete;
  StateFile& operator=(const StateFile&) = delete;
  const std::optional<Failure>& error() const { return error_; }
  const std::filesystem::path& path() const { return path_; }
  Result<SafeTensors> open() const { return SafeTensors::open(path_); }

 private:
  std::filesystem::path path_;
  std::optional<Failure> error_;
};

// Parameters and buffers of a state, without what is the optimiser's.
std::vector<std::pair<std::string, TensorView>> weights_in(const SafeTensors& state);

// The loss of an input in what a level gave; NaN: it is not there.
double loss_in(const SafeTensors& outputs, int index);

// The same optimiser with one setting changed.
template <class Value>
core::Optimiser with(core::Optimiser optimiser, Value core::Optimiser::*setting, Value value) {
  optimiser.*setting = value;
  return optimiser;
}
template <class Rule, class Value>
core::Optimiser with(core::Optimiser optimiser, Value Rule::*setting, Value value) {
  std::get<Rule>(optimiser.rule).*setting = value;
  return optimiser;
}

// Train mode on a weight set, with a fresh optimiser.
Try<void> begin(Session& session, const std::string& set, bool dropout, const core::Optimiser& optimiser);

struct ProbeStep {
  SafeTensors loss;
  TrainState after;
};
// On weights `set`, dropout off, the probe's optimiser, one step on input 0.
Try<ProbeStep> probe_step(Session& session, const std::string& set);

// One step on input 0 from a state of the driver's own, after `done` others. `names`: of what the state afterwards is
// read; empty: all.
Try<TrainState> step_from(Session& session, const StateFile& base, const core::Optimiser& optimiser,
                          std::int64_t done = 0, const std::vector<std::string>& names = {});

// Whether `state` answered as many steps as were asked for, and the learning rate that is due then.
void check_counts(Participant& participant, const Session& session, const TrainState& state,
                  const core::Optimiser& optimiser);

// The optimiser itself, of a session that is loaded, in strict float32: SGD by differences of steps, Adam by steps from
// chosen states (docs/proof_of_training.md). Adds to participant.training.rules. An error ends the row.
Try<void> prove_rules(Participant& participant, Session& session, const proof::TrainReference& reference);

}  // namespace strata::measure
