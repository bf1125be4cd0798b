// SPDX-License-Identifier: Apache-2.0
// cudnn_plans --for FILE: whether cuDNN has plans for the kinds of convolutions that networks have, on the device that
// FILE describes; needs no device. cudnn_plans --dump FILE: writes the description of the device at hand.
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "nvidia_convolution.hpp"

namespace {

using namespace strata::cudnn;
using Direction = ConvolutionShape::Direction;

struct Kind {
  const char* name;
  Dims image, weight;
  std::int64_t stride = 1, padding = 0, dilation = 1;
};

// Of ResNet, ResNeXt, MobileNet, Inception and EfficientNet, DenseNet, ViT, segmentation, a network of videos, MNIST.
const std::vector<Kind> kinds{{"stem 7x7/2", {8, 3, 224, 224}, {64, 3, 7, 7}, 2, 3},
                              {"3x3", {8, 64, 56, 56}, {64, 64, 3, 3}, 1, 1},
                              {"3x3/2", {8, 128, 56, 56}, {128, 128, 3, 3}, 2, 1},
                              {"1x1", {8, 256, 56, 56}, {64, 256, 1, 1}},
                              {"1x1/2", {8, 256, 56, 56}, {512, 256, 1, 1}, 2},
                              {"3x3 in 32 groups", {8, 128, 56, 56}, {128, 4, 3, 3}, 1, 1},
                              {"depthwise 3x3", {8, 96, 56, 56}, {96, 1, 3, 3}, 1, 1},
                              {"depthwise 5x5/2", {8, 72, 28, 28}, {72, 1, 5, 5}, 2, 2},
                              {"odd channels", {8, 17, 15, 13}, {19, 17, 3, 3}, 1, 1},
                              {"patches 16x16/16", {8, 3, 224, 224}, {768, 3, 16, 16}, 16},
                              {"dilated 3x3", {8, 64, 28, 28}, {64, 64, 3, 3}, 1, 2, 2},
                              {"3x3 of one small image", {1, 512, 1, 1}, {512, 512, 3, 3}, 1, 1},
                              {"1x3", {8, 32, 1, 50}, {16, 32, 1, 3}},
                              {"3x3x3", {2, 16, 8, 28, 28}, {32, 16, 3, 3, 3}, 1, 1},
                              {"MNIST 3x3", {64, 1, 28, 28}, {32, 1, 3, 3}}};

ConvolutionShape shape_of(const Kind& kind, Direction direction, bool last, bool bfloat16) {
  const auto rank = kind.image.size() - 2;
  const auto view = [&](const Dims& dims) { return last ? channels_last(dims) : row_major(dims); };
  Dims result{kind.image[0], kind.weight[0]};
  for (std::size_t i = 2; i < kind.image.size(); ++i)
    result.push_back((kind.image[i] + 2 * kind.padding - kind.dilation * (kind.weight[i] - 1) - 1) / kind.stride + 1);
  return {.direction = direction,
          .image = view(kind.image),
          .weight = view(kind.weight),
          .result = view(result),
          .stride = Dims(rank, kind.stride),
          .dilation = Dims(rank, kind.dilation),
          .padding = Dims(rank, kind.padding),
          .bfloat16 = bfloat16};
}

std::string answer(const std::vector<std::uint8_t>& device, const ConvolutionShape& shape, bool tf32) {
  constexpr int h200 = 90;
  try {
    return "yes\t" + kernel_on(device, h200, shape, tf32);
  } catch (const Unsupported& refused) {
    return std::string("no\t") + refused.what();
  }
}

void ask_all(const std::vector<std::uint8_t>& device) {
  const std::pair<Direction, const char*> directions[] = {
      {Direction::forward, "forward"}, {Direction::of_input, "of_input"}, {Direction::of_weight, "of_weight"}};
  for (const auto& kind : kinds)
    for (const auto& [direction, name] : directions)
      for (const bool last : {false, true})
        for (const std::string precision : {"fp32", "tf32", "bf16"})
          std::cout << kind.name << '\t' << name << '\t' << (last ? "channels_last" : "contiguous") << '\t' << precision
                    << '\t' << answer(device, shape_of(kind, direction, last, precision == "bf16"), precision == "tf32")
                    << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc == 3 ? argv[1] : "";
  try {
    if (what == "--dump") {
      const auto bytes = describe_device();
      std::ofstream(argv[2], std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
      return 0;
    }
    if (what == "--for") {
      std::ifstream file(argv[2], std::ios::binary);
      ask_all({std::istreambuf_iterator<char>(file), {}});
      return 0;
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  std::cerr << "cudnn_plans --for FILE | --dump FILE\n";
  return 2;
}
