// SPDX-License-Identifier: Apache-2.0
// What C++ levels on PyTorch share: tensors from and to the SDK's, strict float32, threads, weights by name, errors.
// A level derives from TorchLevel and gives build(), load_weights() and forward(); one that trains derives from
// TrainableTorchLevel and gives parameters(), buffers() and set_network_mode() as well, and the step is the same for
// all.
#pragma once

#include <torch/torch.h>

#include <filesystem>
#include <functional>
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
// What a module's named_parameters() or named_buffers() gave.
NamedTensors named_tensors(const torch::OrderedDict<std::string, at::Tensor>& items);
// Elements of the tensors; of those that are one and the same memory (tied weights) only once.
std::int64_t elements_once(const NamedTensors& tensors);
// Brings the four-dimensional parameters (convolutions) into channels_last.
void to_channels_last(const NamedTensors& parameters);
// Makes the floating-point tensors bfloat16, in place.
void to_bfloat16(const NamedTensors& tensors);
// Copies every tensor of the set into the tensor of that name; a bfloat16 tensor takes rounded float32. Names, other
// dtypes and shapes must fit exactly, or a Failure says which does not. Names that do not belong to the set are passed
// over.
void copy_weights(
    const NamedTensors& into, const SafeTensors& weights,
    const std::function<bool(const std::string&)>& belongs = [](const std::string&) { return true; });

class TorchLevel : public Level, public Servable {
 public:
  About about() const override;
  bool has_device(const std::string& device) const final;
  void load(const Case& run_case, const Bundle& bundle, const std::filesystem::path& cache) final;
  Facts facts() const override { return facts_; }
  void set_input(std::span<const HostTensor> inputs) final;
  void run() override;
  void wait() final;
  void outputs(std::vector<HostTensor>& results) final;
  // Callers that share forward(), which must then be safe to call from several threads at once.
  std::vector<std::unique_ptr<Client>> clients(int count, int threads) override;
  std::optional<std::int64_t> device_peak_bytes() const final;
  Failure explain(const std::exception& error) const final;

 protected:
  // Makes the network on device(); threads and the case's float32 precision are set. Fills what facts_ is to say beyond
  // them. In the precision bf16 parameters() are to be bfloat16.
  virtual void build(const Case& run_case, const Bundle& bundle, const std::filesystem::path& cache) = 0;
  // One run on device tensors; results in the bundle's order. Under InferenceMode, but in a training step, where only
  // the first result counts.
  virtual std::vector<at::Tensor> forward(std::vector<at::Tensor>& inputs) = 0;

  // What the loaded network holds, by PyTorch's names; empty: it does not say.
  virtual NamedTensors parameters() const { return {}; }
  virtual NamedTensors buffers() const { return {}; }

  at::Device device() const { return device_; }
  bool case_trains() const { return case_trains_; }
  // For bf16 and amp-bf16: the network itself does not convert, so set_input, run and outputs do it around forward().
  void convert_around(const std::string& precision);
  std::vector<at::Tensor>& inputs() { return inputs_; }  // of the last iteration
  Facts facts_;
  // Images are brought to this layout in set_input; a level sets it in build(), where it brings its weights to it too.
  at::MemoryFormat layout_ = at::MemoryFormat::Contiguous;

 private:
  friend class TorchClient;
  friend class TrainableTorchLevel;
  std::vector<at::Tensor> take(std::span<const HostTensor> inputs) const;
  std::vector<at::Tensor> in_mode(std::vector<at::Tensor>& inputs);  // forward in the case's precision
  std::vector<at::Tensor> infer(std::vector<at::Tensor>& inputs);    // the same without gradients, from any thread

  at::Device device_ = at::kCPU;
  std::size_t input_count_ = 0;
  std::vector<at::Tensor> inputs_, results_;
  bool case_trains_ = false;
  bool bfloat16_ = false, autocast_ = false;  // convert_around
  bool log_probabilities_ = false;            // the loss is nll, else cross_entropy
  bool gives_loss_ = false;                   // the network's output is the loss
  at::Tensor labels_;                         // of a training step
};

class TrainableTorchLevel : public TorchLevel, public Trainable, public Profiled {
 public:
  void run() final;
  void set_mode(bool training, bool dropout) final;
  void set_optimiser(const Optimiser& optimiser) final;
  void set_rate(double rate) final;
  State state() const final;
  void load_state(const SafeTensors& state, std::int64_t step) final;
  void seed_dropout(std::uint64_t seed) final;
  void run_marked(const PhaseEnded& ended) final;
  std::unique_ptr<Stopwatch> stopwatch() const final;

 protected:
  NamedTensors parameters() const override = 0;
  NamedTensors buffers() const override = 0;
  // The network's mode, with every dropout's probability as given or 0.
  virtual void set_network_mode(bool training, bool dropout) = 0;

 private:
  at::Tensor loss(const at::Tensor& scores) const;

  bool training_ = false;
  std::unique_ptr<torch::optim::Optimizer> optimiser_;  // of this rule
  Optimiser rule_;
};

}  // namespace strata
