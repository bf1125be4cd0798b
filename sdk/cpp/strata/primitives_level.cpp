// SPDX-License-Identifier: Apache-2.0
#include "strata/primitives_level.hpp"

#include <fmt/format.h>

#include "graph/expand.hpp"
#include "graph/load.hpp"
#include "strata/bundle.hpp"
#include "strata/network_client.hpp"

namespace strata {
namespace {

using primitives::failure_of;
using primitives::Network;

Failure no_graph(const Bundle& bundle) {
  const auto why = bundle.json.value("graph", nlohmann::json::object());
  return {"unsupported",
          fmt::format("the network has no captured graph: {}", why.value("what", std::string("it does not export"))),
          why.value("where", std::string())};
}

std::int64_t bytes_of(const std::filesystem::path& file) {
  std::error_code missing;
  const auto bytes = std::filesystem::file_size(file, missing);
  return missing ? 0 : static_cast<std::int64_t>(bytes);
}

}  // namespace

void PrimitivesLevel::load(const Case& run_case, const Bundle& bundle, const std::filesystem::path&) {
  if (!std::filesystem::exists(bundle.folder / "graph.json")) throw no_graph(bundle);
  facts_.threads = use_threads(run_case.threads);
  auto graph = graph::load(bundle.folder);
  if (!graph) throw failure_of(graph.error());
  auto constants = graph::open_constants(*graph, bundle.folder);
  if (!constants) throw failure_of(constants.error());
  constants_ = *std::move(constants);
  outputs_ = bundle.outputs;
  folder_ = bundle.folder;
  chosen_ = choose(run_case);
  progress("making the library's calls");
  if (run_case.mode == "train") {
    const auto loss = graph::loss_of(*graph, run_case.json.value("loss", std::string("cross_entropy")));
    if (!loss) throw failure_of(loss.error());
    running_ = &training_.emplace(*graph, *loss, chosen_.library, outputs_, bundle.tied);
    facts_.inference_mode = false;
  } else {
    auto network = graph::expanded(*graph);
    if (!network) throw failure_of(network.error());
    running_ = &network_.emplace(*std::move(network), chosen_.library, outputs_);
  }
  facts_.precision = run_case.precision;
  facts_.layout = chosen_.layout;
  facts_.graph = "exported";
  for (const auto& parameter : graph->parameters) facts_.parameters += graph->value(parameter.value).elements();
}

void PrimitivesLevel::load_weights(const std::string& set, const SafeTensors& weights) {
  check(weights);
  if (training_)
    training_->load(weights, constants_);
  else
    network_->load(weights, constants_);
  set_ = set;
  facts_.artefact_bytes = bytes_of(folder_ / "graph.json") + bytes_of(folder_ / "graph_constants.safetensors") +
                          bytes_of(folder_ / "weights" / (set + ".safetensors"));
}

void PrimitivesLevel::load_state(const SafeTensors& state, std::int64_t step) {
  check(state);
  training_->load_state(state, step);
}

void PrimitivesLevel::record(Spans* spans) {
  if (training_)
    training_->record(spans);
  else
    network_->record(spans);
}

std::vector<std::unique_ptr<Client>> PrimitivesLevel::clients(int count, int threads) {
  const auto weights = SafeTensors::map(folder_ / "weights" / (set_ + ".safetensors"));
  if (!weights) throw failure_of(weights.error());
  use_threads(threads);  // a call is made for the number of threads that it will have
  std::vector<std::unique_ptr<Client>> all;
  for (int i = 0; i < count; ++i) {
    Network network(network_->runner().graph(), chosen_.library, outputs_);
    network.load(*weights, constants_);
    all.push_back(
        std::make_unique<NetworkClient<Network>>(std::move(network), [this, threads] { use_threads(threads); }));
  }
  return all;
}

std::vector<std::string> PrimitivesLevel::readable_weights() const {
  return training_ ? training_->weights() : network_->runner().readable_weights();
}

HostTensor PrimitivesLevel::weight(const std::string& name) const {
  const auto& graph = training_ ? training_->graph() : network_->runner().graph();
  for (const auto* list : {&graph.parameters, &graph.buffers})
    for (const auto& named : *list) {
      if (named.name != name) continue;
      const auto& value = graph.value(named.value);
      auto tensor = allocate(std::string(graph::safetensors_name(value.type)), value.shape);
      if (training_) {
        training_->read(named, writable(tensor));
      } else if (auto read = network_->runner().read_weight(name, writable(tensor)); !read) {
        throw failure_of(read.error());
      }
      return tensor;
    }
  throw Failure("bad_request", fmt::format("the network has no weight '{}'", name));
}

}  // namespace strata
