// SPDX-License-Identifier: Apache-2.0
// The program that strata generated for the network, as a library: see README.md for what changes from the level above.
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cstring>

#include "generated.hpp"
#include "graph/graph.hpp"
#include "strata/bundle.hpp"
#include "strata/level.hpp"
#include "strata/network_client.hpp"

namespace {

namespace fs = std::filesystem;
using strata::Failure;
using strata::static_program::Generated;

// One network in memory of its own: what the level or one of several clients runs.
class Network {
 public:
  Network(const Generated& program, int threads, const std::vector<strata::Declared>& outputs)
      : program_(&program), model_(program.create(threads), program.destroy) {
    if (model_ == nullptr) throw failure();
    for (const auto& wanted : outputs) {
      int number = 0;
      while (number < program.output_count() && wanted.name != program.output_tensor(number)->name) ++number;
      if (number == program.output_count())
        throw Failure("unsupported", fmt::format("the captured graph does not give '{}'", wanted.name),
                      "leave --deep out for this level");
      outputs_.emplace_back(wanted, number);
    }
  }

  void load(const fs::path& weights, const fs::path& constants) {
    if (program_->load(model_.get(), weights.c_str(), fs::exists(constants) ? constants.c_str() : nullptr) != 0)
      throw failure();
  }
  void set_input(std::span<const strata::HostTensor> inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      program_->set_input(model_.get(), static_cast<int>(i), reinterpret_cast<const float*>(inputs[i].view.data));
  }
  void run() {
    if (program_->run(model_.get()) != 0) throw failure();
  }
  void outputs(std::vector<strata::HostTensor>& results) const {
    results.clear();
    for (const auto& [declared, number] : outputs_) {
      auto& result = results.emplace_back(strata::allocate(declared.dtype, declared.shape));
      std::memcpy(strata::writable(result), program_->output(model_.get(), number), result.view.bytes);
    }
  }
  ModelFacts facts() const { return program_->facts(model_.get()); }

 private:
  Failure failure() const {
    const std::string what = program_->error();
    const bool no_memory = what.find("bad_alloc") != std::string::npos;
    const bool has_nan = what.find("holds NaN") != std::string::npos;
    if (no_memory) return {"out_of_memory", "the host has no memory left"};
    return {has_nan ? "unsupported" : "failed", what, has_nan ? "give weights without NaN, or use another level" : ""};
  }

  const Generated* program_;
  std::unique_ptr<Model, void (*)(Model*)> model_;
  std::vector<std::pair<strata::Declared, int>> outputs_;  // with their number in the program
};

class StaticLevel final : public strata::Level {
 public:
  strata::About about() const override {
    strata::About about;
    about.id = "static";
    about.versions = {{"onednn", STRATA_ONEDNN_VERSION}};
    about.variants = {"default", "measured"};
    about.reports = true;
    about.serves = true;
    return about;
  }

  void load(const strata::Case& wanted, const strata::Bundle& bundle, const fs::path& cache) override {
    const auto library = cache / "network.so";
    if (!fs::exists(library))
      throw Failure("failed", fmt::format("{} is missing", library.string()), "the level's prepare command makes it");
    program_ = opened(library);
    check_inputs(bundle);
    folder_ = bundle.folder;
    outputs_ = bundle.outputs;
    network_ = std::make_unique<Network>(*program_, wanted.threads, outputs_);
    const auto facts = network_->facts();
    facts_.threads = facts.threads;
    facts_.layout = "any";
    facts_.graph = "exported";
    facts_.autotune = strata::variant() == "measured";
    facts_.parameters = facts.parameters;
    library_ = library;
  }

  void load_weights(const std::string& set, const strata::SafeTensors&) override {
    set_ = set;
    network_->load(weights(), constants());
    facts_.artefact_bytes = 0;
    for (const auto& file : {library_, weights(), constants()}) {
      std::error_code missing;
      if (const auto bytes = fs::file_size(file, missing); !missing)
        facts_.artefact_bytes += static_cast<std::int64_t>(bytes);
    }
  }

  strata::Facts facts() const override { return facts_; }
  void set_input(std::span<const strata::HostTensor> inputs) override { network_->set_input(inputs); }
  void run() override { network_->run(); }
  void outputs(std::vector<strata::HostTensor>& results) override { network_->outputs(results); }

  nlohmann::json report() override {
    const auto facts = network_->facts();
    return {{"primitives", facts.calls},
            {"reorders", facts.moves},
            {"reference_kernels", facts.reference_kernels},
            {"arena_bytes", facts.arena_bytes},
            {"least_arena_bytes", facts.least_arena_bytes},
            {"scratchpad_bytes", facts.scratch_bytes},
            {"weight_bytes", facts.weight_bytes},
            {"library", program_->library()}};
  }

  std::vector<std::unique_ptr<strata::Client>> clients(int count, int threads) override {
    std::vector<std::unique_ptr<strata::Client>> all;
    for (int i = 0; i < count; ++i) {
      Network network(*program_, threads, outputs_);  // a call is made for the number of threads that it will have
      network.load(weights(), constants());
      all.push_back(std::make_unique<strata::NetworkClient<Network>>(std::move(network), threads));
    }
    return all;
  }

 private:
  static std::unique_ptr<Generated> opened(const fs::path& library) {
    try {
      return std::make_unique<Generated>(library);
    } catch (const std::runtime_error& error) {
      throw Failure("failed", error.what(), "remove its folder; it is made again");
    }
  }

  // The artefact is shared by bundles of the same graph; its inputs are fixed.
  void check_inputs(const strata::Bundle& bundle) const {
    for (std::size_t i = 0; i < bundle.inputs.size(); ++i) {
      const auto* known = program_->input(static_cast<int>(i));
      const auto& shape = bundle.inputs[i].shape;
      if (known == nullptr || bundle.inputs[i].name != known->name || static_cast<int>(shape.size()) != known->rank ||
          !std::equal(shape.begin(), shape.end(), known->extents))
        throw Failure("failed",
                      fmt::format("the generated program was made for another input than '{}'", bundle.inputs[i].name),
                      "remove its folder; it is made again");
    }
  }
  fs::path weights() const { return folder_ / "weights" / (set_ + ".safetensors"); }
  fs::path constants() const { return folder_ / "graph_constants.safetensors"; }

  std::unique_ptr<Generated> program_;
  std::unique_ptr<Network> network_;
  std::vector<strata::Declared> outputs_;
  fs::path folder_, library_;
  std::string set_;
  strata::Facts facts_;
};

}  // namespace

STRATA_LEVEL(StaticLevel)
