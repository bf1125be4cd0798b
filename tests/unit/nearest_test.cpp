// SPDX-License-Identifier: Apache-2.0
#include "common/nearest.hpp"

#include <gtest/gtest.h>

namespace strata {
namespace {

const std::vector<std::string> levels = {"eager", "compile",     "torchscript", "libtorch",
                                         "aoti",  "onnxruntime", "openvino"};

TEST(Nearest, counts_edits_and_a_swap_of_neighbours_as_one) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("eagre", "eager"), 1U);
  EXPECT_EQ(edit_distance("ab", "ba"), edit_distance("ba", "ab"));
}

TEST(Nearest, suggests_the_name_that_was_misspelt) {
  EXPECT_EQ(nearest("eagr", levels), "eager");
  EXPECT_EQ(nearest("libtroch", levels), "libtorch");
  EXPECT_EQ(nearest("OpenVino", levels), "openvino");
  EXPECT_EQ(nearest("onnx-runtime", levels), "onnxruntime");
}

TEST(Nearest, suggests_a_name_by_its_beginning) {
  EXPECT_EQ(nearest("onnx", levels), "onnxruntime");
  EXPECT_EQ(nearest("torch", levels), "torchscript");
}

TEST(Nearest, suggests_nothing_for_a_name_that_is_near_none) {
  EXPECT_EQ(nearest("banana", levels), std::nullopt);
  EXPECT_EQ(nearest("", levels), std::nullopt);
  EXPECT_EQ(nearest("eager", {}), std::nullopt);
}

TEST(Nearest, is_not_slowed_by_absurdly_long_input) {
  EXPECT_EQ(nearest(std::string(10'000'000, 'x'), levels), std::nullopt);
}

}  // namespace
}  // namespace strata
