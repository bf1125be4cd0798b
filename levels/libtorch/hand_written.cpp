// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "network.hpp"
#include "runnable.hpp"

namespace {

using strata::Failure;

class HandWritten final : public Runnable {
 public:
  HandWritten(const strata::Case& run_case, const strata::Bundle& bundle)
      : network_(make_network(run_case.model)), deep_(run_case.deep), outputs_(bundle.outputs) {
    for (const auto& module : network_->modules())
      if (const auto dropout = std::dynamic_pointer_cast<torch::nn::DropoutImpl>(module))
        dropouts_.emplace_back(dropout, dropout->options.p());
  }

  void to(at::Device device) override { network_->to(device); }
  std::vector<at::Tensor> forward(std::vector<at::Tensor>& inputs) override {
    Taps tap(deep_);
    at::Tensor result = network_->forward(inputs.front(), tap);
    return deep_ ? with_taps(std::move(result), tap) : std::vector<at::Tensor>{std::move(result)};
  }
  strata::NamedTensors parameters() const override { return strata::named_tensors(network_->named_parameters()); }
  strata::NamedTensors buffers() const override { return strata::named_tensors(network_->named_buffers()); }
  bool is_frozen(const std::string&) const override { return false; }
  void set_mode(bool training, bool dropout) override {
    network_->train(training);
    for (const auto& [module, probability] : dropouts_) module->options.p(dropout ? probability : 0.0);
  }

 private:
  // The result, then the taps in the bundle's order.
  std::vector<at::Tensor> with_taps(at::Tensor result, const Taps& tap) const {
    std::vector<at::Tensor> all{std::move(result)};
    for (std::size_t i = 1; i < outputs_.size(); ++i) {
      const auto it = tap.outputs().find(outputs_[i].name);
      if (it == tap.outputs().end())
        throw Failure("failed",
                      fmt::format("the bundle wants '{}', which this network does not record", outputs_[i].name));
      all.push_back(it->second);
    }
    return all;
  }

  std::shared_ptr<Network> network_;
  bool deep_;
  std::vector<std::pair<std::shared_ptr<torch::nn::DropoutImpl>, double>> dropouts_;  // with the p that they were given
  std::vector<strata::Declared> outputs_;
};

}  // namespace

std::unique_ptr<Runnable> make_hand_written(const strata::Case& run_case, const strata::Bundle& bundle) {
  const Wanted input = input_of(run_case.model);
  const auto& shape = bundle.inputs.front().shape;
  if (bundle.inputs.size() != 1 || shape.size() != 4 || shape[1] != input.channels ||
      (input.side != 0 && (shape[2] != input.side || shape[3] != input.side)) || bundle.inputs.front().dtype != "F32")
    throw Failure("unsupported",
                  fmt::format("{} takes one float32 input [N, {}, {}], got {} [{}]", run_case.model, input.channels,
                              input.side != 0 ? fmt::format("{0}, {0}", input.side) : "H, W",
                              bundle.inputs.front().dtype, fmt::join(shape, ", ")));
  return std::make_unique<HandWritten>(run_case, bundle);
}
