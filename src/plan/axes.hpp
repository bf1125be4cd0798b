// SPDX-License-Identifier: Apache-2.0
// Several values of one axis, as a person types them: lists, ranges, sizes of images.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace strata::plan {

// Height and width of an image in pixels.
struct ImageSize {
  int height = 0, width = 0;

  bool operator==(const ImageSize&) const = default;
};

constexpr int most_values = 256;        // of one axis
constexpr int largest_image = 1 << 14;  // pixels along an edge

// "1,2,4"; "1..4" is every whole number, "1..32*2" every double, "0..9+3" every third; both together as "1,8..32*2".
// Error (usage): another form, a value outside [low, high], one twice, more than most_values.
Result<std::vector<int>> whole_numbers(const std::string& option, const std::string& text, int low, int high);

// "64,128", "64..256*2" (squares), "224x320" (height x width). The same errors.
Result<std::vector<ImageSize>> image_sizes(const std::string& option, const std::string& text);

}  // namespace strata::plan
