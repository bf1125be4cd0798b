// SPDX-License-Identifier: Apache-2.0
// The program that strata generated for the network, as a library: see README.md for what changes from the level above.
#include <fmt/format.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <cstring>

#include "network.hpp"
#include "strata/level.hpp"
#include "strata/network_client.hpp"
#include "training.hpp"

namespace {

namespace fs = std::filesystem;
using strata::Failure;
using strata::static_program::Generated;
using strata::static_program::Network;
using strata::static_program::Training;

class StaticLevel final : public strata::Level,
                          public strata::Servable,
                          public strata::Reporting,
                          public strata::Trainable,
                          public strata::Profiled,
                          public strata::TimesOperations {
 public:
  strata::About about() const override {
    const auto* version = dnnl_version();  // of the library that is there, which may be newer than the header
    return {.versions = {{"onednn", fmt::format("{}.{}.{}", version->major, version->minor, version->patch)}},
            .operations = {}};
  }

  void load(const strata::Case& run_case, const strata::Bundle& bundle, const fs::path& cache) override {
    folder_ = bundle.folder;
    on_device_ = run_case.device == "cuda";
    outputs_ = bundle.outputs;
    library_ = cache / "network.so";
    if (run_case.mode == "train") {
      program_.reset();
      training_ = std::make_unique<Training>(cache, run_case.threads, outputs_, bundle.tied);
      running_ = training_.get();
      facts_.inference_mode = false;
    } else {
      program_ = strata::static_program::opened(library_);
      network_ = std::make_unique<Network>(*program_, run_case.threads, outputs_);
      running_ = network_.get();
    }
    check_inputs(bundle);
    const auto facts = network().facts();
    facts_.threads = facts.threads;
    facts_.layout = "any";
    facts_.precision = run_case.precision;
    facts_.graph = "exported";
    facts_.autotune = run_case.variant == "measured";
    facts_.parameters = facts.parameters;
  }

  void load_weights(const std::string& set, const strata::SafeTensors&) override {
    set_ = set;
    training_ ? training_->load(weights(), constants()) : network_->load(weights(), constants());
    facts_.artefact_bytes = 0;
    for (const auto& file : {library_, weights(), constants()}) {
      std::error_code missing;
      if (const auto bytes = fs::file_size(file, missing); !missing)
        facts_.artefact_bytes += static_cast<std::int64_t>(bytes);
    }
  }

  strata::Facts facts() const override { return facts_; }
  void set_input(std::span<const strata::HostTensor> inputs) override { running_->set_input(inputs); }
  void run() override { running_->run(); }
  void outputs(std::vector<strata::HostTensor>& results) override { running_->outputs(results); }

  void set_mode(bool training, bool dropout) override { training_->set_mode(training, dropout); }
  void set_optimiser(const strata::Optimiser& optimiser) override { training_->set_optimiser(optimiser); }
  void set_rate(double rate) override { training_->set_rate(rate); }
  strata::State state() const override { return training_->state(); }
  void load_state(const strata::SafeTensors& state, std::int64_t step) override { training_->load_state(state, step); }
  void seed_dropout(std::uint64_t seed) override { training_->seed_dropout(seed); }
  void run_marked(const strata::PhaseEnded& ended) override { training_->run_marked(ended); }
  strata::JoinedPhases joined_phases() const override { return {{"backward", {"backward", "update"}}}; }

  void record(strata::Spans* spans) override { training_ ? training_->record(spans) : network_->record(spans); }
  std::vector<strata::OperationFacts> recorded() const override { return network().recorded(); }

  // What the program holds on the device, which is allocated once.
  std::optional<std::int64_t> device_peak_bytes() const override {
    if (!on_device_) return std::nullopt;
    const auto facts = network().facts();
    return facts.arena_bytes + facts.weight_bytes + facts.scratch_bytes + facts.output_bytes;
  }

  nlohmann::json report() override {
    const auto facts = network().facts();
    return {{"primitives", facts.calls},
            {"reorders", facts.moves},
            {"reference_kernels", facts.reference_kernels},
            {"arena_bytes", facts.arena_bytes},
            {"least_arena_bytes", facts.least_arena_bytes},
            {"scratchpad_bytes", facts.scratch_bytes},
            {"weight_bytes", facts.weight_bytes},
            {"library", program().library()}};
  }

  std::vector<std::unique_ptr<strata::Client>> clients(int count, int threads) override {
    std::vector<std::unique_ptr<strata::Client>> all;
    for (int i = 0; i < count; ++i) {
      Network network(*program_, threads, outputs_);  // a call is made for the number of threads that it will have
      network.load(weights(), constants());
      all.push_back(std::make_unique<strata::NetworkClient<Network>>(std::move(network),
                                                                     [threads] { omp_set_num_threads(threads); }));
    }
    return all;
  }

 private:
  const Generated& program() const { return training_ ? training_->program() : *program_; }
  const Network& network() const { return training_ ? training_->network() : *network_; }

  // The artefact is shared by bundles of the same graph; its inputs are fixed.
  void check_inputs(const strata::Bundle& bundle) const {
    for (std::size_t i = 0; i < bundle.inputs.size(); ++i) {
      const auto* known = program().input(static_cast<int>(i));
      const auto& shape = bundle.inputs[i].shape;
      if (known == nullptr || bundle.inputs[i].name != known->name || bundle.inputs[i].dtype != known->type ||
          static_cast<int>(shape.size()) != known->rank || !std::equal(shape.begin(), shape.end(), known->extents))
        throw Failure("failed",
                      fmt::format("the generated program was made for another input than '{}'", bundle.inputs[i].name),
                      "remove its folder; it is made again");
    }
  }
  fs::path weights() const { return folder_ / "weights" / (set_ + ".safetensors"); }
  fs::path constants() const { return folder_ / "graph_constants.safetensors"; }

  std::unique_ptr<Generated> program_;
  std::unique_ptr<Network> network_;     // in mode infer
  std::unique_ptr<Training> training_;   // in mode train
  strata::Iterated* running_ = nullptr;  // which of them
  std::vector<strata::Declared> outputs_;
  fs::path folder_, library_;
  std::string set_;
  bool on_device_ = false;
  strata::Facts facts_;
};

}  // namespace

STRATA_LEVEL(StaticLevel)
