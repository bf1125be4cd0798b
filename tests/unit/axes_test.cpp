// SPDX-License-Identifier: Apache-2.0
// Values of an axis: lists, ranges, sizes of images; and the product of axes as a list of points.
#include "plan/axes.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/options.hpp"

namespace strata::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Axes, are_lists_and_ranges) {
  EXPECT_THAT(*whole_numbers("--batch", "1,2,4", 1, 99), ElementsAre(1, 2, 4));
  EXPECT_THAT(*whole_numbers("--batch", "1..4", 1, 99), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(*whole_numbers("--batch", "1..32*2", 1, 99), ElementsAre(1, 2, 4, 8, 16, 32));
  EXPECT_THAT(*whole_numbers("--batch", "3..20*2", 1, 99), ElementsAre(3, 6, 12));
  EXPECT_THAT(*whole_numbers("--batch", "1..9+4,20", 1, 99), ElementsAre(1, 5, 9, 20));
  EXPECT_THAT(*image_sizes("--size", "64,96x128"), ElementsAre(ImageSize{64, 64}, ImageSize{96, 128}));
  EXPECT_THAT(*image_sizes("--size", "32..128*2"),
              ElementsAre(ImageSize{32, 32}, ImageSize{64, 64}, ImageSize{128, 128}));
}

TEST(Axes, that_say_nothing_sensible_are_refused_with_what_is_allowed) {
  for (const auto& [text, words] : {std::pair{"x", "'x' is not a whole number"},
                                    {"1,", "'' is not a whole number"},
                                    {"1..x", "is not a range"},
                                    {"8..1", "8 is above 1"},
                                    {"1..8*1", "continues by '*1'"},
                                    {"1..8+0", "continues by '+0'"},
                                    {"1..8*", "continues by '*'"},
                                    {"0..8*2", "begins at 1"},
                                    {"1..2000000000", "more than 256"},
                                    {"99999999999", "is not a whole number"},
                                    {"0", "allowed: 1 to 1048576"},
                                    {"2,1..4", "2 is given twice"},
                                    {"1.5", "is not a whole number"},
                                    {"", "no value"}}) {
    const auto values = whole_numbers("--batch", text, 1, largest_batch);
    ASSERT_FALSE(values) << text;
    EXPECT_THAT(values.error().what, ::testing::AllOf(HasSubstr("--batch"), HasSubstr(words))) << text;
    EXPECT_EQ(values.error().exit, Exit::usage);
  }
  for (const auto& [text, words] : {std::pair{"64x", "is not a size"},
                                    {"0", "allowed: 1 to 16384 pixels"},
                                    {"64,64x64", "64x64 is given twice"},
                                    {"64x99999", "allowed: 1 to 16384 pixels"}})
    EXPECT_THAT(image_sizes("--size", text).error().what, HasSubstr(words)) << text;
}

TEST(Axes, make_a_point_of_each_combination_in_the_order_of_modes_precisions_sizes_threads_and_batches) {
  Options options;
  options.model = "resnet18";
  options.mode = "infer,train";
  options.precision = "fp32,amp-bf16";
  options.size = "64,96x128";
  options.thread_counts = {1, 2};
  options.batches = {1, 8};
  const auto specs = specs_of(options);
  ASSERT_TRUE(specs) << specs.error().what;
  ASSERT_EQ(specs->size(), 32U);
  const auto words = [&](std::size_t i) {
    const auto& one = (*specs)[i];
    return fmt::format("{} {} {}x{} {} {}", name_of(one.mode), name_of(one.precision), one.size->first,
                       one.size->second, one.threads, *one.batch);
  };
  EXPECT_EQ(words(0), "infer fp32 64x64 1 1");
  EXPECT_EQ(words(1), "infer fp32 64x64 1 8");
  EXPECT_EQ(words(2), "infer fp32 64x64 2 1");
  EXPECT_EQ(words(4), "infer fp32 96x128 1 1");
  EXPECT_EQ(words(8), "infer amp-bf16 64x64 1 1");
  EXPECT_EQ(words(31), "train amp-bf16 96x128 2 8");
}

TEST(Axes, of_a_size_of_images_exclude_what_says_the_form_of_inputs) {
  Options options;
  options.model = "resnet18";
  options.size = "64";
  options.inputs = {"1x3x32x32"};
  EXPECT_THAT(specs_of(options).error().what, HasSubstr("--size and --input exclude each other"));
}

}  // namespace
}  // namespace strata::plan
