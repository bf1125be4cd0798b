// SPDX-License-Identifier: Apache-2.0
// Networks that are written by hand here; for any other the level generates a program.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

inline constexpr std::array<std::string_view, 6> hand_written_names{"resnet18",  "resnet34",  "resnet50",
                                                                    "resnet101", "resnet152", "mnist_convnet"};

constexpr bool is_hand_written(std::string_view model) {
  return std::find(hand_written_names.begin(), hand_written_names.end(), model) != hand_written_names.end();
}

// Why another network cannot serve several batch sizes.
inline std::string one_batch_only(const std::string& model) {
  return "'" + model + "' is not written by hand here, and a generated program is made for one batch";
}
