// SPDX-License-Identifier: Apache-2.0
#include "strata/primitives_network.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "strata/bundle.hpp"

namespace strata::primitives {

Failure failure_of(const Error& error) {
  return {error.exit == Exit::environment ? "unsupported" : "failed", error.what, error.hint};
}

OperationFacts facts_of(const Called& call, const graph::Graph& graph) {
  const auto& [node, what] = call;
  OperationFacts facts{.operation = what.operation, .kernel = what.kernel, .moves_only = what.moves_only};
  if (node == nullptr) return facts;
  facts.layer = node->module;
  for (const auto& argument : node->args)
    for (const int value : argument.values)
      if (value >= 0) facts.shapes.push_back(graph.value(value).shape);
  return facts;
}

namespace {

Runner make_runner(const graph::Graph& graph, const MakeLibrary& library) {
  auto runner = Runner::make(graph, library());
  if (!runner) throw failure_of(runner.error());
  return *std::move(runner);
}

}  // namespace

Network::Network(const graph::Graph& graph, const MakeLibrary& library, const std::vector<Declared>& outputs)
    : runner_(make_runner(graph, library)) {
  for (const auto& expected : outputs) {
    const auto& own = runner_.graph().outputs;
    const auto it =
        std::find_if(own.begin(), own.end(), [&](const auto& element) { return element.name == expected.name; });
    if (it == own.end())
      throw Failure("unsupported", fmt::format("the captured graph does not give '{}'", expected.name),
                    "leave --deep out for this level");
    outputs_.emplace_back(expected, static_cast<std::size_t>(it - own.begin()));
  }
}

void Network::load(const SafeTensors& weights, const SafeTensors& constants) {
  if (auto loaded = runner_.load(weights, &constants); !loaded) throw failure_of(loaded.error());
}

void Network::load(const std::function<const std::byte*(const std::string&)>& bytes, const SafeTensors& constants) {
  if (auto loaded = runner_.load(bytes, &constants); !loaded) throw failure_of(loaded.error());
}

void Network::set_input(std::span<const HostTensor> inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) runner_.set_input(i, inputs[i].view.data);
}

std::vector<OperationFacts> Network::recorded() const {
  std::vector<OperationFacts> all;
  for (const auto& call : runner_.describe()) all.push_back(facts_of(call, runner_.graph()));
  return all;
}

void Network::outputs(std::vector<HostTensor>& results) {
  results.clear();
  for (const auto& [declared, i] : outputs_) {
    auto& result = results.emplace_back(allocate(declared.dtype, declared.shape));
    runner_.read(i, writable(result));
  }
}

}  // namespace strata::primitives
