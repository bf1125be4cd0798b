// SPDX-License-Identifier: Apache-2.0
// models/mnist_convnet in C++: (N, 1, 28, 28) -> log-probabilities (N, 10).
#include "network.hpp"

namespace nn = torch::nn;

namespace {

struct MnistConvnet final : Network {
  nn::Conv2d conv1{nullptr}, conv2{nullptr};
  nn::ReLU relu1{nullptr}, relu2{nullptr}, relu3{nullptr};
  nn::MaxPool2d pool{nullptr};
  nn::Dropout dropout1{nullptr}, dropout2{nullptr};
  nn::Linear fc1{nullptr}, fc2{nullptr};

  MnistConvnet() {
    conv1 = register_module("conv1", nn::Conv2d(nn::Conv2dOptions(1, 32, 3)));
    relu1 = register_module("relu1", nn::ReLU());
    conv2 = register_module("conv2", nn::Conv2d(nn::Conv2dOptions(32, 64, 3)));
    relu2 = register_module("relu2", nn::ReLU());
    pool = register_module("pool", nn::MaxPool2d(2));
    dropout1 = register_module("dropout1", nn::Dropout(0.25));
    fc1 = register_module("fc1", nn::Linear(9216, 128));
    relu3 = register_module("relu3", nn::ReLU());
    dropout2 = register_module("dropout2", nn::Dropout(0.5));
    fc2 = register_module("fc2", nn::Linear(128, 10));
  }

  at::Tensor forward(at::Tensor x, Taps& tap) override {
    x = tap("", "conv1", conv1(x));
    x = tap("", "relu1", relu1(x));
    x = tap("", "conv2", conv2(x));
    x = tap("", "relu2", relu2(x));
    x = tap("", "pool", pool(x));
    x = tap("", "dropout1", dropout1(x));
    x = tap("", "fc1", fc1(torch::flatten(x, 1)));
    x = tap("", "relu3", relu3(x));
    x = tap("", "dropout2", dropout2(x));
    x = tap("", "fc2", fc2(x));
    return torch::log_softmax(x, 1);
  }
};

}  // namespace

std::shared_ptr<Network> make_mnist_convnet() {
  return std::make_shared<MnistConvnet>();
}
