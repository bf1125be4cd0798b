// SPDX-License-Identifier: Apache-2.0
// A data set as whoever trains on it sees it: images and labels in memory, all of one size, in the order of its splits'
// lists. Whose bytes they are (a mapped cache, the program's own) does not matter to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace strata::data {

struct Shape {
  std::int64_t channels = 0, height = 0, width = 0;
  std::size_t bytes() const { return static_cast<std::size_t>(channels * height * width); }
};

// Whether an image has one class or any number of them.
enum class Targets { one_class, several_classes };

// What several_classes holds besides 0 (absent) and 1 (present): only hard examples, which a score leaves out.
constexpr std::uint8_t difficult_target = 255;

struct Split {
  std::string list_sha256;                // of the list that says which images, in which order
  std::size_t count = 0;                  // images
  std::span<const std::uint8_t> images;   // [count, channels, height, width]
  std::span<const std::int64_t> labels;   // [count], with one_class
  std::span<const std::uint8_t> targets;  // [count, classes], with several_classes
};

struct Dataset {
  std::string name;
  std::vector<std::string> classes;
  Shape shape;
  Targets kind = Targets::one_class;
  int highest_value = 255;  // of a pixel
  Split train, test;
  std::shared_ptr<const void> memory;  // what the spans look into
};

// The set that is part of the program: 1,797 handwritten digits of 8x8, values 0 to 16, as scikit-learn has them.
// digits/README.md says whose they are.
Dataset digits();

}  // namespace strata::data
