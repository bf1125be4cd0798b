// SPDX-License-Identifier: Apache-2.0
// What the levels share that run the captured graph on a library of primitives (sdk/cpp/primitives), one call an
// operation, in inference and training: such a level derives from PrimitivesLevel, and says which library, and what it
// refuses.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strata/level.hpp"
#include "strata/primitives_network.hpp"
#include "strata/primitives_training.hpp"

namespace strata {

class PrimitivesLevel : public Level,
                        public Servable,
                        public ReadableWeights,
                        public Reporting,
                        public Trainable,
                        public Profiled,
                        public TimesOperations {
 public:
  void load(const Case& run_case, const Bundle& bundle, const std::filesystem::path& cache) final;
  void load_weights(const std::string& set, const SafeTensors& weights) final;
  Facts facts() const final { return facts_; }
  void set_input(std::span<const HostTensor> inputs) final { running_->set_input(inputs); }
  void run() final { running_->run(); }
  void wait() final { running_->wait(); }
  void outputs(std::vector<HostTensor>& results) final { running_->outputs(results); }
  nlohmann::json report() final { return training_ ? training_->report() : network_->runner().report(); }

  void set_mode(bool training, bool dropout) final { training_->set_mode(training, dropout); }
  void set_optimiser(const Optimiser& optimiser) final { training_->set_optimiser(optimiser); }
  void set_rate(double rate) final { training_->set_rate(rate); }
  State state() const final { return training_->state(); }
  void load_state(const SafeTensors& state, std::int64_t step) final;
  void seed_dropout(std::uint64_t seed) final { training_->seed_dropout(seed); }
  void run_marked(const PhaseEnded& ended) final { training_->run_marked(ended); }

  void record(Spans* spans) override;
  std::vector<OperationFacts> recorded() const final {
    return training_ ? training_->recorded() : network_->recorded();
  }

  // Each with all memory of its own: calls are bound to their tensors.
  std::vector<std::unique_ptr<Client>> clients(int count, int threads) final;
  std::vector<std::string> readable_weights() const final;
  HostTensor weight(const std::string& name) const final;

 protected:
  // The library for a case in the variant that is asked for, and the layout that `settings` are to say.
  struct Chosen {
    primitives::MakeLibrary library;
    std::string layout;
  };
  virtual Chosen choose(const Case& run_case) const = 0;
  // From now on work that this thread starts takes as many threads. Returns how many it has.
  virtual int use_threads(int threads) const = 0;
  // Throws a Failure for weights that the library would not compute with as PyTorch does.
  virtual void check(const SafeTensors&) const {}

 private:
  std::optional<primitives::Network> network_;    // in mode infer
  std::optional<primitives::Training> training_;  // in mode train
  Iterated* running_ = nullptr;                   // which of them
  Chosen chosen_;
  SafeTensors constants_;
  std::vector<Declared> outputs_;
  std::filesystem::path folder_;
  std::string set_;
  Facts facts_;
};

}  // namespace strata
