// SPDX-License-Identifier: Apache-2.0
// A case of mode train: the generated training step, its state, and the forward pass in eval mode, which is a program
// of its own that gets the trained weights when the mode changes.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "network.hpp"
#include "strata/unused_tensors.hpp"
#include "train/training.h"

namespace strata::static_program {

// The functions of training.h beside those of model.h.
struct GeneratedTraining : Generated {
  explicit GeneratedTraining(const std::filesystem::path& file);
  decltype(model_state_count)* state_count;
  decltype(model_state)* state;
  decltype(model_read)* read;
  decltype(model_write)* write;
  decltype(model_read_momentum)* read_momentum;
  decltype(model_write_momentum)* write_momentum;
  decltype(model_read_square)* read_square;
  decltype(model_write_square)* write_square;
  decltype(model_drop_momentum)* drop_momentum;
  decltype(model_set_optimiser)* set_optimiser;
  decltype(model_set_adam)* set_adam;
  decltype(model_set_clip_norm)* set_clip_norm;
  decltype(model_set_steps)* set_steps;
  decltype(model_set_dropout)* set_dropout;
  decltype(model_read_draws)* read_draws;
  decltype(model_write_draws)* write_draws;
  decltype(model_set_labels)* set_labels;
  decltype(model_run_phase)* run_phase;
};

// Functions as in strata::Trainable; all throw Failure.
class Training : public Iterated {
 public:
  // `folder`: of the artefact, with network.so and evaluation.so; `tied`: of the bundle.
  Training(const std::filesystem::path& folder, int threads, std::vector<Declared> outputs,
           std::map<std::string, std::string> tied);

  void load(const std::filesystem::path& weights, const std::filesystem::path& constants);
  State state() const;
  void load_state(const SafeTensors& state, std::int64_t step);
  void seed_dropout(std::uint64_t seed);
  void set_mode(bool training, bool dropout);
  void set_optimiser(const Optimiser& optimiser);
  void set_rate(double rate);

  // Inputs of the network, and in training mode the labels.
  void set_input(std::span<const HostTensor> inputs) override;
  void run() override;
  void run_marked(const PhaseEnded& ended);
  void outputs(std::vector<HostTensor>& results) override;

  const Generated& program() const { return program_; }
  const Network& network() const { return *network_; }
  // Of training steps alone.
  void record(Spans* spans) { network_->record(spans); }

 private:
  void send_optimiser();
  void evaluate_with_present_weights();
  bool changes(const std::string& name) const;  // a step changes it
  HostTensor present(int number) const;         // of the state
  // A buffer of the optimiser, by its place among core::buffer_prefixes; -1: there is none.
  int read_buffer(std::size_t which, const char* name, float* data) const;
  int write_buffer(std::size_t which, const char* name, const float* data);

  GeneratedTraining program_;
  std::optional<Network> network_;
  std::filesystem::path folder_, constants_;
  std::vector<Declared> outputs_;
  int threads_;
  Optimiser optimiser_;
  bool training_ = true;
  std::unique_ptr<Generated> evaluation_program_;  // once the mode was eval
  std::optional<Network> evaluation_;
  UnusedTensors unused_;
};

}  // namespace strata::static_program
