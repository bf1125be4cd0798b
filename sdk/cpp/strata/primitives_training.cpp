// SPDX-License-Identifier: Apache-2.0
#include "strata/primitives_training.hpp"

#include <set>

#include "graph/expand.hpp"
#include "strata/bundle.hpp"
#include "strata/drawing.hpp"

namespace strata::primitives {
namespace {

Trainer make_trainer(const graph::Graph& network, graph::Loss loss, const MakeLibrary& library) {
  auto training = graph::differentiate(network, loss);
  if (!training) throw failure_of(training.error());
  auto trainer = Trainer::make(*std::move(training), library());
  if (!trainer) throw failure_of(trainer.error());
  return *std::move(trainer);
}

HostTensor host_tensor(const graph::Value& value) {
  return allocate(std::string(graph::safetensors_name(value.type)), value.shape);
}

}  // namespace

Training::Training(graph::Graph network, graph::Loss loss, MakeLibrary library, std::vector<Declared> outputs,
                   std::map<std::string, std::string> tied)
    : network_(std::move(network)),
      library_(std::move(library)),
      outputs_(std::move(outputs)),
      trainer_(make_trainer(network_, loss, library_)),
      unused_(std::move(tied)) {}

std::vector<std::string> Training::weights() const {
  std::vector<std::string> names;
  for (const auto* list : {&graph().parameters, &graph().buffers})
    for (const auto& named : *list) names.push_back(named.name);
  return names;
}

void Training::load(const SafeTensors& weights, const SafeTensors& constants) {
  constants_ = &constants;
  if (auto loaded = trainer_.load(weights, constants_); !loaded) throw failure_of(loaded.error());
  trainer_.drop_buffers();
  const auto known = this->weights();
  const std::set<std::string> read(known.begin(), known.end());
  unused_.load(weights, [&](const std::string& name) { return read.contains(name); });
  if (!training_) evaluate_with_present_weights();
}

State Training::state() const {
  State result;
  for (const auto* list : {&graph().parameters, &graph().buffers})
    for (const auto& named : *list) {
      if (!graph::is_floating(graph().value(named.value).type)) continue;
      auto& [name, tensor] = result.emplace_back(weight_prefix + named.name, host_tensor(graph().value(named.value)));
      trainer_.read(named, writable(tensor));
    }
  for (const auto& count : trainer_.counts()) {
    auto& [name, tensor] = result.emplace_back(count_prefix + count.name, host_tensor(graph().value(count.value)));
    trainer_.read(count, writable(tensor));
  }
  unused_.add_to(result);
  const auto prefixes = core::buffer_prefixes(trainer_.optimiser());
  for (const auto& with_buffer : trainer_.with_buffers())
    for (std::size_t i = 0; i < prefixes.size(); ++i) {
      auto& [name, tensor] = result.emplace_back(std::string(prefixes[i]) + with_buffer.name,
                                                 host_tensor(graph().value(with_buffer.value)));
      trainer_.read_buffer(with_buffer.name, i, writable(tensor));
    }
  add_count(result, trainer_.draws());
  return result;
}

void Training::load_state(const SafeTensors& state, std::int64_t step) {
  unused_.check(state);
  if (auto loaded = trainer_.load(state, constants_, weight_prefix); !loaded) throw failure_of(loaded.error());
  if (auto loaded = trainer_.load_buffers(state, step); !loaded) throw failure_of(loaded.error());
  if (auto loaded = trainer_.load_counts(state, count_prefix); !loaded) throw failure_of(loaded.error());
  if (const auto count = count_in(state)) trainer_.set_draws(*count);
  unused_.replace(state);
  if (!training_) evaluate_with_present_weights();
}

std::vector<OperationFacts> Training::recorded() const {
  std::vector<OperationFacts> all;
  for (const auto& call : trainer_.describe()) all.push_back(facts_of(call, graph()));
  if (trainer_.clips()) all.push_back({.operation = "clip", .layer = {}});
  for (const auto& name : trainer_.updated()) {
    const auto dot = name.rfind('.');
    all.push_back({.operation = "update", .layer = dot == std::string::npos ? "" : name.substr(0, dot)});
  }
  return all;
}

void Training::seed_dropout(std::uint64_t seed) {
  trainer_.set_draws(first_count(seed));
}

void Training::set_mode(bool training, bool dropout) {
  trainer_.set_dropout(dropout);
  training_ = training;
  if (!training && constants_ != nullptr) evaluate_with_present_weights();
}

void Training::set_optimiser(const Optimiser& optimiser) {
  if (auto done = trainer_.set_optimiser(optimiser); !done) throw failure_of(done.error());
}

void Training::evaluate_with_present_weights() {
  if (!evaluation_) {
    auto evaluation = graph::expanded(graph::evaluation_of(network_));
    if (!evaluation) throw failure_of(evaluation.error());
    evaluation_.emplace(*std::move(evaluation), library_, outputs_);
  }
  std::map<std::string, HostTensor> present;
  for (const auto* list : {&graph().parameters, &graph().buffers})
    for (const auto& named : *list) {
      auto& tensor = present.emplace(named.name, host_tensor(graph().value(named.value))).first->second;
      trainer_.read(named, writable(tensor));
    }
  evaluation_->load([&](const std::string& name) { return present.at(name).view.data; }, *constants_);
}

void Training::set_input(std::span<const HostTensor> inputs) {
  const auto own = network_.inputs.size();
  if (!training_) return evaluation_->set_input(inputs.first(own));
  for (std::size_t i = 0; i < own; ++i) trainer_.set_input(i, inputs[i].view.data);
  if (inputs.size() > own) trainer_.set_labels(inputs[own].view.data);
}

void Training::run() {
  if (!training_) return evaluation_->run();
  run_marked([](std::string_view) {});
}

void Training::run_marked(const PhaseEnded& ended) {
  trainer_.forward();
  ended("forward");
  trainer_.loss();
  ended("loss");
  trainer_.backward();
  ended("backward");
  trainer_.update();
  ended("update");
}

void Training::outputs(std::vector<HostTensor>& results) {
  if (!training_) return evaluation_->outputs(results);
  results.assign(1, allocate("F32", {}));
  trainer_.read_loss(writable(results.front()));
}

}  // namespace strata::primitives
