// SPDX-License-Identifier: Apache-2.0
// What C++ levels on PyTorch share: tensors from and to the SDK's, strict float32, threads, weights by name, errors.
// A level derives from TorchLevel and gives about(), build(), load_weights() and forward().
#pragma once

#include <torch/torch.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "strata/level.hpp"

namespace strata {

// A view of host memory; the caller keeps the bytes.
at::Tensor borrow(const TensorView& view);
// A contiguous host copy, or the tensor's own bytes if it is a contiguous host tensor; kept alive by the result.
HostTensor to_host(const at::Tensor& tensor);

using NamedTensors = std::map<std::string, at::Tensor>;
// Parameters, and buffers, under PyTorch's names.
NamedTensors named_tensors(const torch::nn::Module& module);
// Copies every tensor of the set into the tensor of that name. Names, dtypes and shapes must fit exactly, or a Failure
// says which does not.
void copy_weights(const NamedTensors& into, const SafeTensors& weights);

class TorchLevel : public Level {
 public:
  void load(const Case& wanted, const Bundle& bundle, const std::filesystem::path& cache) final;
  Facts facts() const override { return facts_; }
  void set_input(std::span<const HostTensor> inputs) final;
  void run() final;
  void wait() final;
  void outputs(std::vector<HostTensor>& results) final;
  std::optional<std::int64_t> device_peak_bytes() const final;
  Failure explain(const std::exception& error) const final;

 protected:
  // Makes the network on device(); threads and strict float32 are set. Fills what facts_ is to say beyond them.
  virtual void build(const Case& wanted, const Bundle& bundle, const std::filesystem::path& cache) = 0;
  // One run on device tensors, under InferenceMode; results in the bundle's order.
  virtual std::vector<at::Tensor> forward(std::vector<at::Tensor>& inputs) = 0;

  // What every level on PyTorch answers to hello; "cuda" only if this build and this machine have it.
  static About torch_about(std::string id);
  at::Device device() const { return device_; }
  Facts facts_;

 private:
  at::Device device_ = at::kCPU;
  std::vector<at::Tensor> inputs_, results_;
};

}  // namespace strata
