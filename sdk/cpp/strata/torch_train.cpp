// SPDX-License-Identifier: Apache-2.0
// The training step that C++ levels on PyTorch share: torch::optim's SGD, Adam and AdamW, the loss outside the network,
// the state.
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <cmath>
#include <set>

#include "strata/drawing.hpp"
#include "strata/torch_level.hpp"
#include "strata/unused_tensors.hpp"

namespace strata {

namespace {

using torch::optim::AdamParamState;
using torch::optim::AdamWParamState;
using torch::optim::SGDParamState;

// Device events: a phase's time is the device's, and nothing waits between phases.
class EventStopwatch final : public Stopwatch {
 public:
  explicit EventStopwatch(at::Device device) : device_(device), guard_(device.type()) {}

  void mark() override {
    events_.emplace_back(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
    events_.back().record(guard_.getStream(device_));
  }

  std::vector<std::int64_t> between_ns() override {
    std::vector<std::int64_t> result;
    events_.back().synchronize();
    for (std::size_t i = 1; i < events_.size(); ++i)
      result.push_back(std::llround(events_[i - 1].elapsedTime(events_[i]) * 1e6));  // it gives milliseconds
    return result;
  }

 private:
  at::Device device_;
  c10::impl::VirtualGuardImpl guard_;
  std::vector<c10::Event> events_;
};

std::unique_ptr<torch::optim::Optimizer> make_optimiser(const Optimiser& how, std::vector<at::Tensor> trained) {
  if (const auto* sgd = how.sgd())
    return std::make_unique<torch::optim::SGD>(std::move(trained), torch::optim::SGDOptions(how.lr)
                                                                       .momentum(sgd->momentum)
                                                                       .dampening(sgd->dampening)
                                                                       .weight_decay(how.weight_decay)
                                                                       .nesterov(sgd->nesterov));
  const auto& adam = *how.adam();
  const auto with = [&](auto options) {
    return options.betas(std::make_tuple(adam.beta1, adam.beta2)).eps(adam.eps).weight_decay(how.weight_decay);
  };
  if (adam.decoupled)
    return std::make_unique<torch::optim::AdamW>(std::move(trained), with(torch::optim::AdamWOptions(how.lr)));
  return std::make_unique<torch::optim::Adam>(std::move(trained), with(torch::optim::AdamOptions(how.lr)));
}

// The buffers of a parameter in the order of core::buffer_prefixes; undefined: it has none.
std::vector<at::Tensor> buffers_of(const Optimiser& how, torch::optim::Optimizer& optimiser,
                                   const at::Tensor& parameter) {
  const auto it = optimiser.state().find(parameter.unsafeGetTensorImpl());
  if (it == optimiser.state().end()) return std::vector<at::Tensor>(core::buffer_prefixes(how).size());
  auto& parameter_state = *it->second;
  if (how.sgd() != nullptr) return {static_cast<SGDParamState&>(parameter_state).momentum_buffer()};
  const auto both = [](const auto& state) -> std::vector<at::Tensor> { return {state.exp_avg(), state.exp_avg_sq()}; };
  return how.adam()->decoupled ? both(static_cast<AdamWParamState&>(parameter_state))
                               : both(static_cast<AdamParamState&>(parameter_state));
}

std::unique_ptr<torch::optim::OptimizerParamState> state_of(const Optimiser& how, std::vector<at::Tensor> buffers,
                                                            std::int64_t step) {
  const auto with_both = [&](auto parameter_state) {
    parameter_state->step(step);
    parameter_state->exp_avg(std::move(buffers[0]));
    parameter_state->exp_avg_sq(std::move(buffers[1]));
    return parameter_state;
  };
  if (how.adam() != nullptr && how.adam()->decoupled) return with_both(std::make_unique<AdamWParamState>());
  if (how.adam() != nullptr) return with_both(std::make_unique<AdamParamState>());
  auto parameter_state = std::make_unique<SGDParamState>();
  parameter_state->momentum_buffer(std::move(buffers[0]));
  return parameter_state;
}

bool is_count(const at::Tensor& buffer) {
  return buffer.scalar_type() == at::kLong && buffer.dim() == 0;
}

// PyTorch's generators by the state's names: of the host, and of the device.
std::vector<std::pair<std::string, at::Generator>> generators(at::Device device) {
  std::vector<std::pair<std::string, at::Generator>> all;
  all.emplace_back(std::string(generator_prefix) + "torch", at::globalContext().defaultGenerator(at::kCPU));
  if (device.is_cuda())
    all.emplace_back(std::string(generator_prefix) + "torch-cuda", at::globalContext().defaultGenerator(device));
  return all;
}

}  // namespace

void TrainableTorchLevel::run() {
  if (training_) return run_marked([](std::string_view) {});
  TorchLevel::run();
}

void TrainableTorchLevel::set_mode(bool training, bool dropout) {
  set_network_mode(training, dropout);
  training_ = training;
}

void TrainableTorchLevel::set_optimiser(const Optimiser& optimiser) {
  std::vector<at::Tensor> trained;
  std::set<const at::TensorImpl*> known;  // a parameter may have several names, and is updated once
  for (const auto& [name, parameter] : parameters())
    if (parameter.requires_grad() && known.insert(parameter.unsafeGetTensorImpl()).second) trained.push_back(parameter);
  optimiser_ = make_optimiser(optimiser, std::move(trained));
  rule_ = optimiser;
}

void TrainableTorchLevel::set_rate(double rate) {
  for (auto& group : optimiser_->param_groups()) group.options().set_lr(rate);
}

at::Tensor TrainableTorchLevel::loss(const at::Tensor& scores) const {
  if (gives_loss_) return scores;
  return log_probabilities_ ? at::nll_loss(scores, labels_) : at::cross_entropy_loss(scores, labels_);
}

void TrainableTorchLevel::run_marked(const PhaseEnded& ended) {
  at::Tensor scores = in_mode(inputs_).front();
  if (autocast_) scores = scores.to(at::kFloat);
  ended("forward");
  const at::Tensor value = loss(scores);
  ended("loss");
  optimiser_->zero_grad();
  value.backward();
  ended("backward");
  if (rule_.clip_norm > 0)
    torch::nn::utils::clip_grad_norm_(optimiser_->param_groups().front().params(), rule_.clip_norm);
  optimiser_->step();
  ended("update");
  results_.assign(1, value.detach());
}

State TrainableTorchLevel::state() const {
  State result;
  const auto own = parameters();
  for (const auto& [name, parameter] : own) result.emplace_back("weight:" + name, to_host(parameter));
  for (const auto& [name, buffer] : buffers())
    if (buffer.is_floating_point())
      result.emplace_back(weight_prefix + name, to_host(buffer));
    else if (is_count(buffer))
      result.emplace_back(count_prefix + name, to_host(buffer));
  const auto prefixes = core::buffer_prefixes(rule_);
  for (const auto& [name, parameter] : own) {
    const auto buffers = buffers_of(rule_, *optimiser_, parameter);
    for (std::size_t i = 0; i < prefixes.size(); ++i)
      if (buffers[i].defined()) result.emplace_back(std::string(prefixes[i]) + name, to_host(buffers[i]));
  }
  for (const auto& [name, generator] : generators(device_)) result.emplace_back(name, to_host(generator.get_state()));
  return result;
}

void TrainableTorchLevel::load_state(const SafeTensors& state, std::int64_t step) {
  NamedTensors into;
  std::vector<std::pair<at::Tensor, std::vector<at::Tensor>>> saved;
  const auto prefixes = core::buffer_prefixes(rule_);
  for (const auto& [name, parameter] : parameters()) {
    into.emplace("weight:" + name, parameter);
    std::vector<at::Tensor> buffers;
    bool any = step > 0 && rule_.adam() != nullptr && parameter.requires_grad();  // which then has taken steps
    for (const auto& prefix : prefixes) {
      buffers.push_back(at::zeros_like(parameter.detach()));
      if (state.find(std::string(prefix) + name) == nullptr) continue;
      into.emplace(std::string(prefix) + name, buffers.back());
      any = true;
    }
    if (any) saved.emplace_back(parameter, std::move(buffers));
  }
  for (const auto& [name, buffer] : buffers())
    if (buffer.is_floating_point() || (is_count(buffer) && state.find(count_prefix + name) != nullptr))
      into.emplace((is_count(buffer) ? count_prefix : weight_prefix) + name, buffer);
  copy_weights(into, state, [](const std::string& name) { return !name.starts_with(generator_prefix); });
  for (auto& [name, generator] : generators(device_))
    if (const auto* tensor = state.find(name)) generator.set_state(borrow(*tensor).clone());
  optimiser_->state().clear();
  for (auto& [parameter, buffers] : saved)
    optimiser_->state()[parameter.unsafeGetTensorImpl()] = state_of(rule_, std::move(buffers), step);
}

void TrainableTorchLevel::seed_dropout(std::uint64_t seed) {
  torch::manual_seed(seed);
}

std::unique_ptr<Stopwatch> TrainableTorchLevel::stopwatch() const {
  if (device_.is_cpu()) return Profiled::stopwatch();
  return std::make_unique<EventStopwatch>(device_);
}

}  // namespace strata
