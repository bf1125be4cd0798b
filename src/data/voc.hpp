// SPDX-License-Identifier: Apache-2.0
// PASCAL VOC's annotations and lists.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace strata::data {

// The classes of an annotation's objects in the file's order; parts and actions of objects are none.
Result<std::vector<std::string>> parse_voc_objects(std::string_view xml, const std::string& where);

// One line of ImageSets/Main: an image, and in a class's list whether that class is there: -1, 0 (difficult) or 1.
struct VocLine {
  std::string image;
  int value = 0;
};
// Errors name the line: a name that is no plain file name, one that stands there twice, a value that is none of these.
Result<std::vector<VocLine>> parse_voc_list(std::string_view text, bool with_values, const std::string& where);

}  // namespace strata::data
