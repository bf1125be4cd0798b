// SPDX-License-Identifier: Apache-2.0
// The ResNet family (He et al. 2015) as torchvision defines it: stride in the 3x3 convolution of a bottleneck,
// ReLU and the residual sum in place, the same names for every module.
#include <array>

#include "network.hpp"

namespace nn = torch::nn;

namespace {

nn::Conv2d conv(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride = 1) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

nn::ReLU relu_in_place() {
  return nn::ReLU(nn::ReLUOptions().inplace(true));
}

// A residual block; `folder` is its path with a dot at the end ("layer1.0."), for taps.
struct Block : nn::Module {
  nn::ReLU relu{nullptr};
  nn::Conv2d shortcut{nullptr};  // empty: the identity
  nn::BatchNorm2d shortcut_norm{nullptr};
  std::string folder;

  virtual at::Tensor forward(at::Tensor x, Taps& tap) = 0;

 protected:
  // Called last by the blocks, so that the modules stand in torchvision's order.
  void finish(std::int64_t in, std::int64_t out, std::int64_t stride) {
    relu = register_module("relu", relu_in_place());
    if (stride == 1 && in == out) return;
    shortcut = conv(in, out, 1, stride);
    shortcut_norm = nn::BatchNorm2d(out);
    register_module("downsample", nn::Sequential(shortcut, shortcut_norm));
  }

  at::Tensor join(at::Tensor out, const at::Tensor& x, Taps& tap) {
    at::Tensor identity = x;
    if (shortcut) {
      identity = tap(folder, "downsample.0", shortcut(x));
      identity = tap(folder, "downsample.1", shortcut_norm(identity));
    }
    out += identity;
    return tap(folder, "relu", relu(out));
  }
};

struct BasicBlock final : Block {
  static constexpr std::int64_t expansion = 1;
  nn::Conv2d conv1{nullptr}, conv2{nullptr};
  nn::BatchNorm2d bn1{nullptr}, bn2{nullptr};

  BasicBlock(std::int64_t in, std::int64_t planes, std::int64_t stride) {
    conv1 = register_module("conv1", conv(in, planes, 3, stride));
    bn1 = register_module("bn1", nn::BatchNorm2d(planes));
    conv2 = register_module("conv2", conv(planes, planes, 3));
    bn2 = register_module("bn2", nn::BatchNorm2d(planes));
    finish(in, planes, stride);
  }

  at::Tensor forward(at::Tensor x, Taps& tap) override {
    at::Tensor out = tap(folder, "conv1", conv1(x));
    out = tap(folder, "bn1", bn1(out));
    out = tap(folder, "relu", relu(out));
    out = tap(folder, "conv2", conv2(out));
    out = tap(folder, "bn2", bn2(out));
    return join(out, x, tap);
  }
};

struct Bottleneck final : Block {
  static constexpr std::int64_t expansion = 4;
  nn::Conv2d conv1{nullptr}, conv2{nullptr}, conv3{nullptr};
  nn::BatchNorm2d bn1{nullptr}, bn2{nullptr}, bn3{nullptr};

  Bottleneck(std::int64_t in, std::int64_t planes, std::int64_t stride) {
    conv1 = register_module("conv1", conv(in, planes, 1));
    bn1 = register_module("bn1", nn::BatchNorm2d(planes));
    conv2 = register_module("conv2", conv(planes, planes, 3, stride));
    bn2 = register_module("bn2", nn::BatchNorm2d(planes));
    conv3 = register_module("conv3", conv(planes, planes * expansion, 1));
    bn3 = register_module("bn3", nn::BatchNorm2d(planes * expansion));
    finish(in, planes * expansion, stride);
  }

  at::Tensor forward(at::Tensor x, Taps& tap) override {
    at::Tensor out = tap(folder, "conv1", conv1(x));
    out = tap(folder, "bn1", bn1(out));
    out = tap(folder, "relu", relu(out));
    out = tap(folder, "conv2", conv2(out));
    out = tap(folder, "bn2", bn2(out));
    out = tap(folder, "relu", relu(out));
    out = tap(folder, "conv3", conv3(out));
    out = tap(folder, "bn3", bn3(out));
    return join(out, x, tap);
  }
};

template <class BlockType>
struct ResNet final : Network {
  nn::Conv2d conv1{nullptr};
  nn::BatchNorm2d bn1{nullptr};
  nn::ReLU relu{nullptr};
  nn::MaxPool2d maxpool{nullptr};
  std::vector<std::shared_ptr<BlockType>> blocks;
  nn::AdaptiveAvgPool2d avgpool{nullptr};
  nn::Linear fc{nullptr};

  // `depths`: blocks in each of the four stages. 1000 classes.
  explicit ResNet(const std::array<int, 4>& depths) {
    conv1 = register_module("conv1", nn::Conv2d(nn::Conv2dOptions(3, 64, 7).stride(2).padding(3).bias(false)));
    bn1 = register_module("bn1", nn::BatchNorm2d(64));
    relu = register_module("relu", relu_in_place());
    maxpool = register_module("maxpool", nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2).padding(1)));
    std::int64_t in = 64, planes = 64;
    for (std::size_t stage = 0; stage < depths.size(); ++stage, planes *= 2) {
      const auto layer = std::make_shared<nn::Module>();
      const std::string name = "layer" + std::to_string(stage + 1);
      for (int i = 0; i < depths[stage]; ++i) {
        auto block = std::make_shared<BlockType>(in, planes, stage > 0 && i == 0 ? 2 : 1);
        block->folder = name + "." + std::to_string(i) + ".";
        blocks.push_back(layer->register_module(std::to_string(i), std::move(block)));
        in = planes * BlockType::expansion;
      }
      register_module(name, layer);
    }
    avgpool = register_module("avgpool", nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions({1, 1})));
    fc = register_module("fc", nn::Linear(in, 1000));
  }

  at::Tensor forward(at::Tensor x, Taps& tap) override {
    x = tap("", "conv1", conv1(x));
    x = tap("", "bn1", bn1(x));
    x = tap("", "relu", relu(x));
    x = tap("", "maxpool", maxpool(x));
    for (const auto& block : blocks) x = block->forward(x, tap);
    x = tap("", "avgpool", avgpool(x));
    return tap("", "fc", fc(torch::flatten(x, 1)));
  }
};

}  // namespace

std::shared_ptr<Network> make_resnet(const std::string& name) {
  if (name == "resnet18") return std::make_shared<ResNet<BasicBlock>>(std::array{2, 2, 2, 2});
  if (name == "resnet34") return std::make_shared<ResNet<BasicBlock>>(std::array{3, 4, 6, 3});
  if (name == "resnet50") return std::make_shared<ResNet<Bottleneck>>(std::array{3, 4, 6, 3});
  if (name == "resnet101") return std::make_shared<ResNet<Bottleneck>>(std::array{3, 4, 23, 3});
  return std::make_shared<ResNet<Bottleneck>>(std::array{3, 8, 36, 3});
}
