// SPDX-License-Identifier: Apache-2.0
// A case of mode train on a library of primitives: training steps, their state, and the forward pass in eval mode,
// which is a network of its own that gets the trained weights when the mode changes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "primitives/trainer.hpp"
#include "strata/primitives_network.hpp"
#include "strata/unused_tensors.hpp"

namespace strata::primitives {

// Functions as in strata::Trainable; all throw Failure.
class Training : public Iterated {
 public:
  // `tied`: of the bundle.
  Training(graph::Graph network, graph::Loss loss, MakeLibrary library, std::vector<Declared> outputs,
           std::map<std::string, std::string> tied);

  void load(const SafeTensors& weights, const SafeTensors& constants);  // `constants` must stay
  State state() const;
  void load_state(const SafeTensors& state, std::int64_t step);
  void seed_dropout(std::uint64_t seed);
  void set_mode(bool training, bool dropout);
  void set_optimiser(const Optimiser& optimiser);
  void set_rate(double rate) { trainer_.set_rate(rate); }

  // Inputs of the network, and in training mode the labels.
  void set_input(std::span<const HostTensor> inputs) override;
  void run() override;
  void wait() override { training_ ? trainer_.wait() : evaluation_->wait(); }
  void run_marked(const PhaseEnded& ended);
  void outputs(std::vector<HostTensor>& results) override;

  const graph::Graph& graph() const { return trainer_.graph(); }
  std::vector<std::string> weights() const;  // names
  void read(const graph::Named& named, std::byte* into) const { trainer_.read(named, into); }
  nlohmann::json report() const { return trainer_.report(); }
  void record(Spans* spans) { trainer_.record(spans); }
  std::vector<OperationFacts> recorded() const;

 private:
  void evaluate_with_present_weights();

  graph::Graph network_;
  MakeLibrary library_;
  std::vector<Declared> outputs_;
  Trainer trainer_;
  bool training_ = true;
  std::optional<Network> evaluation_;  // once the mode was eval
  const SafeTensors* constants_ = nullptr;
  UnusedTensors unused_;
};

}  // namespace strata::primitives
