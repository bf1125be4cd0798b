// SPDX-License-Identifier: Apache-2.0
// The hand-written networks of this level, with torchvision's and models/' parameter names.
#pragma once

#include <torch/torch.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

// Records the output of every leaf module for `--deep`, named like the bundle's taps: `tap:<path>`, then `#2`, ...
class Taps {
 public:
  explicit Taps(bool enabled) : enabled_(enabled) {}
  // Returns `value`; keeps a copy of it, since an in-place ReLU may follow.
  at::Tensor operator()(const std::string& folder, const char* leaf, at::Tensor value) {
    if (enabled_) copy(folder + leaf, value);
    return value;
  }
  const std::map<std::string, at::Tensor>& outputs() const { return outputs_; }

 private:
  void copy(const std::string& path, const at::Tensor& value);
  bool enabled_;
  std::map<std::string, int> calls_;
  std::map<std::string, at::Tensor> outputs_;
};

struct Network : torch::nn::Module {
  virtual at::Tensor forward(at::Tensor x, Taps& tap) = 0;
};

// Channels and, where it is fixed, height and width of the input.
struct Wanted {
  std::int64_t channels = 0, side = 0;  // side 0: any
};

// The network `name` (empty pointer: no such network here), random weights, eval mode.
std::shared_ptr<Network> make_network(const std::string& name);
Wanted input_of(const std::string& name);

std::shared_ptr<Network> make_resnet(const std::string& name);  // resnet18, 34, 50, 101, 152
std::shared_ptr<Network> make_mnist_convnet();
