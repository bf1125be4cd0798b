// SPDX-License-Identifier: Apache-2.0
// The training step that C++ levels on PyTorch share: torch::optim::SGD, the loss outside the network, the state.
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <cmath>
#include <set>

#include "strata/drawing.hpp"
#include "strata/torch_level.hpp"
#include "strata/unread.hpp"

namespace strata {

namespace {

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

// The buffer of a parameter; undefined: it has none.
at::Tensor momentum_of(const torch::optim::SGD& sgd, const at::Tensor& parameter) {
  const auto found = sgd.state().find(parameter.unsafeGetTensorImpl());
  return found == sgd.state().end() ? at::Tensor() : static_cast<SGDParamState&>(*found->second).momentum_buffer();
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

void TorchLevel::set_network_mode(bool, bool) {
  throw Failure("unsupported", "this level does not train");
}

void TorchLevel::set_mode(bool training, bool dropout) {
  set_network_mode(training, dropout);
  training_ = training;
}

void TorchLevel::set_optimiser(const Sgd& sgd) {
  std::vector<at::Tensor> trained;
  std::set<const at::TensorImpl*> known;  // a parameter may have several names, and is updated once
  for (const auto& [name, parameter] : parameters())
    if (parameter.requires_grad() && known.insert(parameter.unsafeGetTensorImpl()).second) trained.push_back(parameter);
  sgd_ = std::make_unique<torch::optim::SGD>(std::move(trained), torch::optim::SGDOptions(sgd.rate)
                                                                     .momentum(sgd.momentum)
                                                                     .dampening(sgd.dampening)
                                                                     .weight_decay(sgd.weight_decay)
                                                                     .nesterov(sgd.nesterov));
}

void TorchLevel::set_rate(double rate) {
  for (auto& group : sgd_->param_groups()) group.options().set_lr(rate);
}

at::Tensor TorchLevel::loss(const at::Tensor& scores) const {
  return log_probabilities_ ? at::nll_loss(scores, labels_) : at::cross_entropy_loss(scores, labels_);
}

void TorchLevel::run_marked(const PhaseEnded& ended) {
  at::Tensor scores = in_mode(inputs_).front();
  if (autocast_) scores = scores.to(at::kFloat);
  ended("forward");
  const at::Tensor value = loss(scores);
  ended("loss");
  sgd_->zero_grad();
  value.backward();
  ended("backward");
  sgd_->step();
  ended("update");
  results_.assign(1, value.detach());
}

State TorchLevel::state() const {
  State result;
  const auto own = parameters();
  for (const auto& [name, parameter] : own) result.emplace_back("weight:" + name, to_host(parameter));
  for (const auto& [name, buffer] : buffers())
    if (buffer.is_floating_point())
      result.emplace_back(weight_prefix + name, to_host(buffer));
    else if (is_count(buffer))
      result.emplace_back(count_prefix + name, to_host(buffer));
  for (const auto& [name, parameter] : own)
    if (const auto momentum = momentum_of(*sgd_, parameter); momentum.defined())
      result.emplace_back("momentum:" + name, to_host(momentum));
  for (const auto& [name, generator] : generators(device_)) result.emplace_back(name, to_host(generator.get_state()));
  return result;
}

void TorchLevel::load_state(const SafeTensors& state) {
  NamedTensors into;
  std::vector<std::pair<at::Tensor, at::Tensor>> momenta;
  for (const auto& [name, parameter] : parameters()) {
    into.emplace("weight:" + name, parameter);
    if (state.find("momentum:" + name) == nullptr) continue;
    momenta.emplace_back(parameter, at::empty_like(parameter.detach()));
    into.emplace("momentum:" + name, momenta.back().second);
  }
  for (const auto& [name, buffer] : buffers())
    if (buffer.is_floating_point() || (is_count(buffer) && state.find(count_prefix + name) != nullptr))
      into.emplace((is_count(buffer) ? count_prefix : weight_prefix) + name, buffer);
  copy_weights(into, state, [](const std::string& name) { return !name.starts_with(generator_prefix); });
  for (auto& [name, generator] : generators(device_))
    if (const auto* found = state.find(name)) generator.set_state(borrow(*found).clone());
  sgd_->state().clear();
  for (auto& [parameter, momentum] : momenta) {
    auto kept = std::make_unique<SGDParamState>();
    kept->momentum_buffer(std::move(momentum));
    sgd_->state()[parameter.unsafeGetTensorImpl()] = std::move(kept);
  }
}

void TorchLevel::seed_dropout(std::uint64_t seed) {
  torch::manual_seed(seed);
}

std::unique_ptr<Stopwatch> TorchLevel::stopwatch() const {
  if (device_.is_cpu()) return Level::stopwatch();
  return std::make_unique<EventStopwatch>(device_);
}

}  // namespace strata
