// SPDX-License-Identifier: Apache-2.0
// Points of a sweep that a level need not try, since it ran out of memory at a smaller one.
#include "plan/out_of_memory_cases.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace strata::plan {
namespace {

core::Case point(std::int64_t batch, std::int64_t size) {
  core::Case one;
  one.model = "net";
  one.batch = batch;
  one.inputs = {{.name = "x", .shape = {batch, 3, size, size}}};
  return one;
}

TEST(OutOfMemoryCases, exclude_points_with_no_smaller_batch_and_no_smaller_images) {
  EXPECT_TRUE(no_smaller(point(8, 64), point(8, 64)));
  EXPECT_TRUE(no_smaller(point(16, 64), point(8, 32)));
  EXPECT_FALSE(no_smaller(point(16, 32), point(8, 64))) << "larger in one axis and smaller in the other";
  EXPECT_FALSE(no_smaller(point(4, 64), point(8, 64)));
}

TEST(OutOfMemoryCases, exclude_points_of_the_same_network_mode_precision_device_and_threads) {
  for (auto change : std::vector<std::function<void(core::Case&)>>{
           [](auto& one) { one.model = "other"; }, [](auto& one) { one.mode = core::Mode::train; },
           [](auto& one) { one.precision = core::Precision::bf16; }, [](auto& one) { one.device = core::Device::cuda; },
           [](auto& one) { one.threads = 2; }, [](auto& one) { one.inputs.clear(); }}) {
    auto other = point(16, 64);
    change(other);
    EXPECT_FALSE(no_smaller(other, point(8, 64)));
  }
}

TEST(OutOfMemoryCases, leave_out_the_level_that_ran_out_and_says_where) {
  OutOfMemoryCases cases;
  cases.add("eager", point(8, 64));
  const auto skipped = cases.skipped(point(16, 64));
  ASSERT_EQ(skipped.size(), 1U);
  EXPECT_EQ(skipped.at("eager").state, State::out_of_memory);
  EXPECT_NE(skipped.at("eager").what.find("skipped: no smaller than net/infer/b8/3x64x64"), std::string::npos);
  EXPECT_TRUE(cases.skipped(point(4, 64)).empty());
}

}  // namespace
}  // namespace strata::plan
