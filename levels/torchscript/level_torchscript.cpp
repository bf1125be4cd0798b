// SPDX-License-Identifier: Apache-2.0
// A traced module (prepare.py), loaded in C++, given its weights by name, then frozen. Every weight set starts from
// the file again, since freezing folds BatchNorm into the convolutions.
#include <torch/script.h>

#include "strata/torch_level.hpp"

namespace {

using strata::Failure;

strata::NamedTensors slots(const torch::jit::Module& module, bool parameters) {
  strata::NamedTensors result;
  if (parameters)
    for (const auto& item : module.named_parameters()) result.emplace(item.name, item.value);
  else
    for (const auto& item : module.named_buffers()) result.emplace(item.name, item.value);
  return result;
}

class TorchScriptLevel final : public strata::TorchLevel {
 public:
  strata::About about() const override { return torch_about("torchscript"); }

  void load_weights(const std::string&, const strata::SafeTensors& weights) override {
    torch::jit::Module fresh = unfrozen_ ? std::move(*unfrozen_) : torch::jit::load(script_, device());
    unfrozen_.reset();
    frozen_.reset();
    fresh.eval();
    strata::NamedTensors wanted = slots(fresh, true);
    for (auto& [name, buffer] : slots(fresh, false))
      if (weights.find(name) != nullptr) wanted.emplace(name, buffer);  // a set holds persistent buffers only
    strata::copy_weights(wanted, weights);
    frozen_ = torch::jit::freeze(fresh);
  }

 protected:
  void build(const strata::Case&, const strata::Bundle&, const std::filesystem::path& cache) override {
    script_ = cache / "script.pt";
    if (!std::filesystem::exists(script_))
      throw Failure("unavailable", script_ + " does not exist", "run the level's prepare.py first");
    unfrozen_ = torch::jit::load(script_, device());
    for (const auto& [name, parameter] : slots(*unfrozen_, true)) facts_.parameters += parameter.numel();
    facts_.artefact_bytes = static_cast<std::int64_t>(std::filesystem::file_size(script_));
    facts_.freezing = true;
    facts_.graph = "traced";
  }

  std::vector<at::Tensor> forward(std::vector<at::Tensor>& inputs) override {
    std::vector<c10::IValue> stack(inputs.begin(), inputs.end());
    const c10::IValue result = frozen_->forward(std::move(stack));
    std::vector<at::Tensor> outputs;
    for (const auto& element : result.toTupleRef().elements()) outputs.push_back(element.toTensor());
    return outputs;
  }

 private:
  std::string script_;
  std::optional<torch::jit::Module> unfrozen_, frozen_;
};

}  // namespace

STRATA_LEVEL(TorchScriptLevel)
