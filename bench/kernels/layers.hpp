// SPDX-License-Identifier: Apache-2.0
// The convolutions and linear layers of ResNet-18, ResNet-50 and the MNIST convnet, each shape once, with how often a
// forward pass has it.
#pragma once

#include <string>
#include <vector>

namespace bench {

struct Layer {
  std::string name;
  int batch, in_channels, out_channels, height, width, kernel, stride, padding;
  int count;  // in a forward pass
  bool residual = false;
  int out_height() const { return (height + 2 * padding - kernel) / stride + 1; }
  int out_width() const { return (width + 2 * padding - kernel) / stride + 1; }
  // Multiplications and additions of the direct sum, padding counted.
  double flops() const {
    return 2.0 * batch * out_channels * out_height() * out_width() * in_channels * kernel * kernel;
  }
  double weight_bytes() const { return 4.0 * in_channels * out_channels * kernel * kernel; }
};

// `network`: "resnet18", "resnet50" or "mnist_convnet"; `size`: pixels on a side (28 for MNIST).
inline std::vector<Layer> layers_of(const std::string& network, int batch, int size) {
  std::vector<Layer> out;
  if (network == "mnist_convnet") {
    out.push_back({"conv1", batch, 1, 32, size, size, 3, 1, 0, 1});
    out.push_back({"conv2", batch, 32, 64, size - 2, size - 2, 3, 1, 0, 1});
    out.push_back({"fc1", batch, (size / 2 - 2) * (size / 2 - 2) * 64, 128, 1, 1, 1, 1, 0, 1});
    out.push_back({"fc2", batch, 128, 10, 1, 1, 1, 1, 0, 1});
    return out;
  }
  const bool deep = network == "resnet50";
  const auto half = [](int s) { return (s + 1) / 2; };
  out.push_back({"conv1", batch, 3, 64, size, size, 7, 2, 3, 1});
  int s = half(half(size));
  const int blocks[4] = {deep ? 3 : 2, deep ? 4 : 2, deep ? 6 : 2, deep ? 3 : 2};
  for (int i = 0; i < 4; ++i) {
    const std::string stage = "layer" + std::to_string(i + 1);
    const int width = 64 << i, stride = i == 0 ? 1 : 2, before = i == 0 ? s : s;
    const int after = stride == 2 ? half(before) : before;
    const int in = deep ? (i == 0 ? 64 : width * 2) : (i == 0 ? 64 : width / 2), wide = deep ? width * 4 : width;
    const auto add = [&](const char* what, int c, int k, int at, int kernel, int by, int count, bool residual = false) {
      out.push_back({stage + "." + what, batch, c, k, at, at, kernel, by, kernel / 2, count, residual});
    };
    if (deep) {
      add("0.conv1", in, width, before, 1, 1, 1);
      if (stride == 2) add("0.conv2", width, width, before, 3, 2, 1);
      add("conv1", wide, width, after, 1, 1, blocks[i] - 1);
      add("conv2", width, width, after, 3, 1, blocks[i] - (stride == 2));
      add("conv3", width, wide, after, 1, 1, blocks[i], true);
      add("0.down", in, wide, before, 1, stride, 1);
    } else {
      if (stride == 2) add("0.conv1", in, width, before, 3, 2, 1);
      add("conv", width, width, after, 3, 1, blocks[i] * 2 - (stride == 2), true);
      if (stride == 2) add("0.down", in, width, before, 1, stride, 1);
    }
    s = after;
  }
  out.push_back({"fc", batch, deep ? 2048 : 512, 1000, 1, 1, 1, 1, 0, 1});
  return out;
}

}  // namespace bench
