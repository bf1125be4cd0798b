// SPDX-License-Identifier: Apache-2.0
#include "primitives/runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "graph/load.hpp"

namespace strata::primitives {
namespace {

const graph::Named* named(const std::vector<graph::Named>& all, std::string_view name) {
  const auto it = std::find_if(all.begin(), all.end(), [&](const graph::Named& named) { return named.name == name; });
  return it == all.end() ? nullptr : &*it;
}

}  // namespace

Result<void> check_supported_ops(const graph::Graph& graph, const std::vector<std::string>& known) {
  std::vector<const graph::Node*> lacking;
  for (const auto& node : graph.nodes)
    if (!node.op.starts_with("aten.") || !std::binary_search(known.begin(), known.end(), node.operation()))
      lacking.push_back(&node);
  if (lacking.empty()) return {};
  return fail("no operation " + graph::operations_with_places(lacking),
              "`strata graph MODEL` shows all operations of the network; level.json lists those of this level",
              Exit::environment);
}

Result<void> create_calls(Primitives& library, const graph::Graph& graph, const graph::Node& node, Steps& steps) {
  try {
    if (auto created = library.create(graph, node, steps); !created)
      return fail(fmt::format("{}: {}", node.where(), created.error().what), created.error().hint, Exit::environment);
    steps.nodes.resize(steps.in_run.size(), &node - graph.nodes.data());
    return {};
  } catch (const graph::ArgumentError& error) {
    return fail(error.what(), "the captured graph and this level disagree; a newer strata may know this form",
                Exit::environment);
  }
}

Result<Runner> Runner::make(graph::Graph graph, std::unique_ptr<Primitives> library) {
  if (graph.mode != graph::Mode::infer)
    return fail("the graph is of a training step, which Trainer runs", "", Exit::environment);
  Runner runner(std::move(graph), std::move(library));
  STRATA_TRY(check_supported_ops(runner.graph_, runner.library_->operations()));
  STRATA_TRY(runner.create());
  return runner;
}

Result<void> Runner::create() {
  for (const auto* list : {&graph_.inputs, &graph_.parameters, &graph_.buffers, &graph_.constants})
    for (const auto& named : *list)
      if (auto declared = library_->declare(graph_, named.value); !declared)
        return fail(fmt::format("'{}': {}", named.name, declared.error().what), "", Exit::environment);
  for (const auto& node : graph_.nodes) STRATA_TRY(create_calls(*library_, graph_, node, steps_));
  for (const auto& output : graph_.outputs)
    if (auto published = library_->publish(graph_, output.value, steps_); !published)
      return fail(fmt::format("output '{}': {}", output.name, published.error().what), "", Exit::environment);
  library_->finish();
  return {};
}

Result<void> Runner::load(const SafeTensors& weights, const SafeTensors* constants) {
  for (const auto* list : {&graph_.parameters, &graph_.buffers})
    STRATA_TRY(graph::check_tensors(graph_, *list, weights));
  return load([&](const std::string& name) { return weights.find(name)->data; }, constants);
}

Result<void> Runner::load(const std::function<const std::byte*(const std::string&)>& bytes,
                          const SafeTensors* constants) {
  if (!graph_.constants.empty()) {
    if (constants == nullptr)
      return fail(fmt::format("the constant '{}' is in no file", graph_.constants.front().name),
                  "capture the network again");
    STRATA_TRY(graph::check_tensors(graph_, graph_.constants, *constants));
  }
  for (const auto* list : {&graph_.parameters, &graph_.buffers})
    for (const auto& named : *list) library_->bind(named.value, bytes(named.name));
  for (const auto& constant : graph_.constants) library_->bind(constant.value, constants->find(constant.name)->data);
  for (const auto& step : steps_.at_load) step->execute();
  return {};
}

std::vector<std::string> Runner::readable_weights() const {
  std::vector<std::string> names;
  for (const auto* list : {&graph_.parameters, &graph_.buffers})
    for (const auto& named : *list)
      if (library_->holds_weight(named.value)) names.push_back(named.name);
  return names;
}

Result<void> Runner::read_weight(const std::string& name, std::byte* into) const {
  for (const auto* list : {&graph_.parameters, &graph_.buffers})
    if (const auto* weight = named(*list, name); weight != nullptr && library_->holds_weight(weight->value)) {
      library_->read_weight(weight->value, into);
      return {};
    }
  return fail(fmt::format("the weight '{}' is not held as a whole", name));
}

nlohmann::json Runner::report() const {
  return report_of(steps_, library_->held());
}

nlohmann::json report_of(const Steps& steps, const Held& held) {
  std::map<std::string, int> kernels;
  std::int64_t moved = 0;
  int moves = 0, slow = 0;
  for (const auto& step : steps.in_run) {
    const auto what = step->describe();
    ++kernels[fmt::format("{} {}", what.operation, what.kernel)];
    moves += what.moves_only ? 1 : 0;
    moved += what.bytes_moved;
    slow += what.kernel.starts_with("ref") ? 1 : 0;
  }
  return {{"primitives", steps.in_run.size()},
          {"reorders", moves},
          {"reorder_bytes", moved},
          {"reference_kernels", slow},
          {"weight_bytes", held.weight_bytes},
          {"buffer_bytes", held.buffer_bytes},
          {"kernels", kernels}};
}

std::vector<Called> described(const Steps& steps, const graph::Graph& graph) {
  std::vector<Called> all;
  for (std::size_t i = 0; i < steps.in_run.size(); ++i)
    all.push_back({i < steps.nodes.size() ? &graph.nodes[static_cast<std::size_t>(steps.nodes[i])] : nullptr,
                   steps.in_run[i]->describe()});
  return all;
}

}  // namespace strata::primitives
