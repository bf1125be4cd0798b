// SPDX-License-Identifier: Apache-2.0
// The captured graph, one call of oneDNN an operation: see README.md for what changes from the level above.
#include <fmt/format.h>
#include <omp.h>

#include "graph/load.hpp"
#include "network.hpp"
#include "operations.hpp"
#include "strata/bundle.hpp"
#include "strata/level.hpp"
#include "strata/network_client.hpp"
#include "training.hpp"

namespace {

using strata::Failure;
using strata::onednn::failure_of;
using strata::onednn::Layouts;
using strata::onednn::Network;
using strata::onednn::Training;

// The name that oneDNN's documentation has for the instructions that it generates code for.
std::string instruction_set() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::sse41:
      return "SSE4.1";
    case dnnl::cpu_isa::avx:
      return "AVX";
    case dnnl::cpu_isa::avx2:
      return "AVX2";
    case dnnl::cpu_isa::avx2_vnni:
      return "AVX2 VNNI";
    case dnnl::cpu_isa::avx2_vnni_2:
      return "AVX2 VNNI 2";
    case dnnl::cpu_isa::avx512_core:
      return "AVX-512";
    case dnnl::cpu_isa::avx512_core_vnni:
      return "AVX-512 VNNI";
    case dnnl::cpu_isa::avx512_core_bf16:
      return "AVX-512 BF16";
    case dnnl::cpu_isa::avx512_core_fp16:
      return "AVX-512 FP16";
    case dnnl::cpu_isa::avx512_core_amx:
      return "AMX";
    case dnnl::cpu_isa::avx512_core_amx_fp16:
      return "AMX FP16";
    default:
      return "generic";
  }
}

class OnednnLevel final : public strata::Level {
 public:
  strata::About about() const override {
    const auto* version = dnnl::version();
    strata::About about;
    about.id = "onednn";
    about.versions = {{"onednn", fmt::format("{}.{}.{}", version->major, version->minor, version->patch)},
                      {"onednn_isa", instruction_set()}};
    about.modes = {"infer", "train"};
    about.variants = {"default", "contiguous"};
    about.reads_weights = true;
    about.reports = true;
    about.serves = true;
    for (const auto& [name, make] : strata::onednn::operations()) about.operations.emplace_back(name);
    return about;
  }

  void load(const strata::Case& wanted, const strata::Bundle& bundle, const std::filesystem::path&) override {
    if (!std::filesystem::exists(bundle.folder / "graph.json")) throw no_graph(bundle);
    omp_set_num_threads(wanted.threads);
    auto graph = strata::graph::load(bundle.folder);
    if (!graph) throw failure_of(graph.error());
    auto constants = strata::graph::open_constants(*graph, bundle.folder);
    if (!constants) throw failure_of(constants.error());
    constants_ = *std::move(constants);
    outputs_ = bundle.outputs;
    folder_ = bundle.folder;
    layouts_ = strata::variant() == "contiguous" ? Layouts::contiguous : Layouts::chosen;
    if (wanted.mode == "train") {
      const auto loss = strata::graph::loss_named(wanted.json.value("loss", std::string("cross_entropy")));
      if (!loss) throw failure_of(loss.error());
      training_.emplace(*graph, *loss, layouts_, outputs_);
      facts_.inference_mode = false;
    } else {
      network_.emplace(*graph, layouts_, outputs_);
    }
    facts_.threads = omp_get_max_threads();
    facts_.layout = layouts_ == Layouts::contiguous ? "contiguous" : "any";
    facts_.graph = "exported";
    for (const auto& parameter : graph->parameters) facts_.parameters += graph->value(parameter.value).elements();
  }

  void load_weights(const std::string& set, const strata::SafeTensors& weights) override {
    strata::onednn::refuse_nan(weights);
    if (training_)
      training_->load(weights, constants_);
    else
      network_->load(weights, constants_);
    set_ = set;
    facts_.artefact_bytes = 0;
    for (const auto* file : {"graph.json", "graph_constants.safetensors"}) add_size(folder_ / file);
    add_size(folder_ / "weights" / (set + ".safetensors"));
  }

  strata::Facts facts() const override { return facts_; }
  void set_input(std::span<const strata::HostTensor> inputs) override {
    training_ ? training_->set_input(inputs) : network_->set_input(inputs);
  }
  void run() override { training_ ? training_->run() : network_->run(); }
  void outputs(std::vector<strata::HostTensor>& results) override {
    training_ ? training_->outputs(results) : network_->outputs(results);
  }
  nlohmann::json report() override { return training_ ? training_->report() : network_->runner().report(); }

  void set_mode(bool training, bool dropout) override { training_->set_mode(training, dropout); }
  void set_optimiser(const strata::Sgd& sgd) override { training_->set_optimiser(sgd); }
  void set_rate(double rate) override { training_->set_rate(rate); }
  strata::State state() const override { return training_->state(); }
  void load_state(const strata::SafeTensors& state) override {
    strata::onednn::refuse_nan(state);
    training_->load_state(state);
  }
  void run_marked(const strata::PhaseEnded& ended) override { training_->run_marked(ended); }

  // Each with all memory of its own: calls are bound to their tensors.
  std::vector<std::unique_ptr<strata::Client>> clients(int count, int threads) override {
    const auto weights = strata::SafeTensors::open(folder_ / "weights" / (set_ + ".safetensors"));
    if (!weights) throw failure_of(weights.error());
    omp_set_num_threads(threads);  // a call is made for the number of threads that it will have
    std::vector<std::unique_ptr<strata::Client>> all;
    for (int i = 0; i < count; ++i) {
      Network network(network_->runner().graph(), layouts_, outputs_);
      network.load(*weights, constants_);
      all.push_back(std::make_unique<strata::NetworkClient<Network>>(std::move(network), threads));
    }
    return all;
  }

  std::vector<std::string> readable_weights() const override {
    return training_ ? training_->weights() : network_->runner().readable_weights();
  }

  strata::HostTensor weight(const std::string& name) const override {
    const auto& graph = training_ ? training_->graph() : network_->runner().graph();
    for (const auto* list : {&graph.parameters, &graph.buffers})
      for (const auto& one : *list) {
        if (one.name != name) continue;
        const auto& value = graph.value(one.value);
        auto tensor = strata::allocate(std::string(strata::graph::safetensors_name(value.type)), value.shape);
        if (training_) {
          training_->read(one, strata::writable(tensor));
        } else if (auto read = network_->runner().read_weight(name, strata::writable(tensor)); !read) {
          throw failure_of(read.error());
        }
        return tensor;
      }
    throw Failure("bad_request", fmt::format("the network has no weight '{}'", name));
  }

  // oneDNN says "could not create a memory object" and the like where the host has no memory left.
  Failure explain(const std::exception& error) const override {
    if (const auto* told = dynamic_cast<const dnnl::error*>(&error);
        told != nullptr && told->status == dnnl_out_of_memory)
      return {"out_of_memory", fmt::format("the host has no memory left ({})", told->what())};
    return strata::Level::explain(error);
  }

 private:
  static Failure no_graph(const strata::Bundle& bundle) {
    const auto why = bundle.json.value("graph", nlohmann::json::object());
    return {"unsupported",
            fmt::format("the network has no captured graph: {}", why.value("what", std::string("it does not export"))),
            why.value("where", std::string())};
  }

  void add_size(const std::filesystem::path& file) {
    std::error_code missing;
    if (const auto bytes = std::filesystem::file_size(file, missing); !missing)
      facts_.artefact_bytes += static_cast<std::int64_t>(bytes);
  }

  std::optional<Network> network_;    // in mode infer
  std::optional<Training> training_;  // in mode train
  strata::SafeTensors constants_;
  std::vector<strata::Declared> outputs_;
  std::filesystem::path folder_;
  std::string set_;
  Layouts layouts_ = Layouts::chosen;
  strata::Facts facts_;
};

}  // namespace

STRATA_LEVEL(OnednnLevel)
