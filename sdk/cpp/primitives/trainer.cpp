// SPDX-License-Identifier: Apache-2.0
#include "primitives/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/nearest.hpp"
#include "graph/load.hpp"
#include "primitives/runner.hpp"

namespace strata::primitives {

Result<Trainer> Trainer::make(graph::TrainingGraph training, std::unique_ptr<Primitives> library) {
  Trainer trainer(std::move(training), std::move(library));
  STRATA_TRY(check_supported_ops(trainer.graph(), trainer.library_->operations()));
  STRATA_TRY(trainer.create());
  return trainer;
}

Result<void> Trainer::create() {
  const auto with_name = [](const graph::Named& named, const Result<void>& done) -> Result<void> {
    if (done) return {};
    return fail(fmt::format("'{}': {}", named.name, done.error().what), "", Exit::environment);
  };
  for (const auto* list : {&graph().inputs, &graph().constants})
    for (const auto& named : *list) STRATA_TRY(with_name(named, library_->declare(graph(), named.value)));
  for (const auto* list : {&graph().parameters, &graph().buffers})
    for (const auto& named : *list) STRATA_TRY(with_name(named, library_->declare_trained(graph(), named.value)));
  const auto& nodes = graph().nodes;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    STRATA_TRY(create_calls(*library_, graph(), nodes[n], steps_));
    if (n + 1 == training_.forward_nodes) forward_end_ = steps_.in_run.size();
    if (n + 1 == training_.loss_nodes) loss_end_ = steps_.in_run.size();
  }
  backward_end_ = steps_.in_run.size();
  STRATA_TRY(library_->publish(graph(), training_.loss, steps_));
  STRATA_TRY(create_updates());
  library_->finish();
  return {};
}

Result<void> Trainer::create_updates() {
  for (const auto& updated : graph().updates)
    for (const auto& buffer : graph().buffers)
      if (buffer.name == updated.name)
        if (auto assigned = library_->assign(graph(), buffer.value, updated.value, steps_); !assigned)
          return fail(fmt::format("buffer '{}': {}", buffer.name, assigned.error().what), "", Exit::environment);
  for (const auto& gradient : training_.gradients)
    for (const auto& parameter : graph().parameters) {
      if (parameter.name != gradient.name) continue;
      auto update_call = library_->update(graph(), parameter.value, gradient.value, steps_);
      if (!update_call)
        return fail(fmt::format("parameter '{}': {}", parameter.name, update_call.error().what), "", Exit::environment);
      trained_.push_back({parameter, *std::move(update_call)});
    }
  return {};
}

Result<void> Trainer::load(const SafeTensors& weights, const SafeTensors* constants, const std::string& prefix) {
  for (const auto* list : {&graph().parameters, &graph().buffers}) {
    auto expected = *list;
    // counts are no part of a state (docs/protocol.md), of a weight set they are
    std::erase_if(expected, [&](const auto& element) {
      return !prefix.empty() && !is_floating(graph().value(element.value).type);
    });
    for (auto& element : expected) element.name = prefix + element.name;
    STRATA_TRY(graph::check_tensors(graph(), expected, weights));
  }
  if (!graph().constants.empty()) {
    if (constants == nullptr) return fail("the graph has constants, and no file of them is given");
    STRATA_TRY(graph::check_tensors(graph(), graph().constants, *constants));
    for (const auto& constant : graph().constants) library_->bind(constant.value, constants->find(constant.name)->data);
  }
  for (const auto* list : {&graph().parameters, &graph().buffers})
    for (const auto& named : *list)
      if (const auto* tensor = weights.find(prefix + named.name)) library_->write_trained(named.value, tensor->data);
  for (const auto& step : steps_.at_load) step->execute();
  return {};
}

Result<void> Trainer::set_optimiser(const core::Optimiser& optimiser) {
  if (optimiser.clip_norm > 0 && !trained_.empty() && !trained_.front().update->gradient_squares())
    return fail("this level does not clip gradients", "the levels on PyTorch do, or leave clip_norm out",
                Exit::environment);
  optimiser_ = optimiser;
  for (const auto& trained : trained_) trained.update->prepare(optimiser);
  drop_buffers();
  return {};
}

double Trainer::clipped_share() const {
  if (optimiser_.clip_norm <= 0) return 1;
  double squares = 0;
  for (const auto& trained : trained_) squares += trained.update->gradient_squares().value_or(0);
  return core::clipped_share(optimiser_, std::sqrt(squares));
}

Result<void> Trainer::load_buffers(const SafeTensors& state, std::int64_t step) {
  std::vector<graph::Named> tensors;
  std::vector<std::string> known;
  const auto prefixes = core::buffer_prefixes(optimiser_);
  for (const auto prefix : prefixes)
    for (const auto& trained : trained_) known.push_back(std::string(prefix) + trained.parameter.name);
  for (const auto& name : state.names()) {
    const bool is_buffer = std::any_of(core::all_buffer_prefixes.begin(), core::all_buffer_prefixes.end(),
                                       [&](std::string_view prefix) { return name.starts_with(prefix); });
    if (!is_buffer) continue;  // weights, counts, generators
    const auto own = std::find(known.begin(), known.end(), name);
    if (own == known.end()) {
      const auto near = nearest(name, known);
      return fail(fmt::format("{}: '{}' is no buffer of a parameter that is trained by {}", state.where(), name,
                              name_of(optimiser_)),
                  near ? fmt::format("the nearest name is '{}'", *near) : "");
    }
    tensors.push_back(
        {name, trained_[static_cast<std::size_t>(own - known.begin()) % trained_.size()].parameter.value});
  }
  STRATA_TRY(graph::check_tensors(graph(), tensors, state));
  for (const auto& trained : trained_) {
    trained.update->drop_buffers();
    for (std::size_t i = 0; i < prefixes.size(); ++i)
      if (const auto* tensor = state.find(std::string(prefixes[i]) + trained.parameter.name))
        trained.update->write_buffer(i, tensor->data);
  }
  steps_done_ = step;
  return {};
}

std::vector<graph::Named> Trainer::counts() const {
  std::vector<graph::Named> all;
  for (const auto& buffer : graph().buffers)
    if (const auto& value = graph().value(buffer.value); value.type == graph::Type::int64 && value.shape.empty())
      all.push_back(buffer);
  return all;
}

Result<void> Trainer::load_counts(const SafeTensors& state, const std::string& prefix) {
  std::vector<graph::Named> tensors;
  for (const auto& count : counts())
    if (state.find(prefix + count.name) != nullptr) tensors.push_back({prefix + count.name, count.value});
  STRATA_TRY(graph::check_tensors(graph(), tensors, state));
  for (const auto& element : tensors) library_->write_trained(element.value, state.find(element.name)->data);
  return {};
}

void Trainer::drop_buffers() {
  for (const auto& trained : trained_) trained.update->drop_buffers();
  steps_done_ = 0;
}

void Trainer::update() {
  execute(backward_end_, steps_.in_run.size());
  ++steps_done_;
  const auto recorded = [&](const auto& work) {
    const auto begin = spans_ == nullptr ? 0 : now_ns();
    work();
    if (spans_ != nullptr) spans_->push_back({begin, now_ns()});
  };
  float clipped = 1;
  if (clips()) recorded([&] { clipped = static_cast<float>(clipped_share()); });
  for (const auto& trained : trained_) recorded([&] { trained.update->execute(optimiser_, steps_done_, clipped); });
}

std::vector<std::string> Trainer::updated() const {
  std::vector<std::string> names;
  for (const auto& trained : trained_) names.push_back(trained.parameter.name);
  return names;
}

std::vector<graph::Named> Trainer::with_buffers() const {
  std::vector<graph::Named> all;
  for (const auto& trained : trained_)
    if (trained.update->has_buffers()) all.push_back(trained.parameter);
  return all;
}

void Trainer::read_buffer(const std::string& parameter, std::size_t which, std::byte* into) const {
  for (const auto& trained : trained_)
    if (trained.parameter.name == parameter) trained.update->read_buffer(which, into);
}

nlohmann::json Trainer::report() const {
  auto report = report_of(steps_, library_->held());
  report["updates"] = trained_.size();
  return report;
}

}  // namespace strata::primitives
