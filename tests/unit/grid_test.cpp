// SPDX-License-Identifier: Apache-2.0
// The points of a sweep: which are looked at most closely, and what memory is expected at the others.
#include "plan/grid.hpp"

#include <gtest/gtest.h>

#include "plan/peak_model.hpp"

namespace strata::plan {
namespace {

using core::Mode;

core::CaseSpec place(int batch, int size, Mode mode = Mode::infer) {
  return {.model = "net", .mode = mode, .batch = batch, .size = std::pair(size, size), .threads = 2};
}

std::vector<core::CaseSpec> places() {
  std::vector<core::CaseSpec> all;
  for (const int batch : {1, 2, 4, 8, 16, 32})
    for (const int size : {32, 64, 128})
      for (const auto mode : {Mode::infer, Mode::train}) all.push_back(place(batch, size, mode));
  return all;
}

TEST(a_grid, has_the_ends_of_every_axis_for_corners) {
  const Grid grid(places());
  for (const int batch : {1, 32})
    for (const int size : {32, 128})
      for (const auto mode : {Mode::infer, Mode::train}) EXPECT_TRUE(grid.is_corner(place(batch, size, mode)));
  EXPECT_FALSE(grid.is_corner(place(1, 64)));
  EXPECT_FALSE(grid.is_corner(place(8, 32)));
}

TEST(a_grid, has_a_line_over_all_sizes_and_one_over_all_batches) {
  const Grid grid(places());
  EXPECT_TRUE(grid.is_on_line(place(8, 32)));
  EXPECT_TRUE(grid.is_on_line(place(2, 64, Mode::train)));
  EXPECT_FALSE(grid.is_on_line(place(2, 32)));
}

TEST(a_grid, of_one_axis_is_a_line) {
  const Grid grid({place(1, 32), place(2, 32), place(4, 32)});
  EXPECT_TRUE(grid.is_on_line(place(2, 32)));
  EXPECT_FALSE(grid.is_corner(place(2, 32)));
}

TEST(a_grid, names_a_point_by_its_axes) {
  EXPECT_EQ(words(point_of(place(8, 64))), "batch 8, size 64, mode infer, precision fp32, threads 2");
  EXPECT_EQ(words(point_of({.model = "m", .size = std::pair(64, 96)})),
            "size 64x96, mode infer, precision fp32, threads 1");
}

core::Case of_mode(core::Mode mode) {
  core::Case one;
  one.model = "net";
  one.mode = mode;
  return one;
}

TEST(a_peak, is_expected_on_a_line_over_what_moves) {
  PeakModel model;
  const auto infer = of_mode(core::Mode::infer), train = of_mode(core::Mode::train);
  model.add("eager", infer, 1e6, 102e6);
  EXPECT_FALSE(model.expected("eager", infer, 2e6)) << "one size says nothing of others";
  model.add("eager", infer, 9e6, 118e6);
  ASSERT_TRUE(model.expected("eager", infer, 5e6));
  EXPECT_NEAR(*model.expected("eager", infer, 5e6), 110e6, 1);
  EXPECT_FALSE(model.expected("eager", train, 5e6));
  EXPECT_FALSE(model.expected("static", infer, 5e6));
}

TEST(a_peak, is_judged_between_its_ends_by_what_the_other_points_foresee) {
  PeakModel model;
  const auto infer = of_mode(core::Mode::infer);
  model.add("eager", infer, 1, 10);
  model.add("eager", infer, 2, 20);
  EXPECT_FALSE(model.worst_error()) << "two points are on any line";
  model.add("eager", infer, 3, 30);
  EXPECT_NEAR(*model.worst_error(), 0, 1e-12);
  model.add("eager", infer, 4, 80);
  EXPECT_NEAR(*model.worst_error(), 4.0 / 7, 1e-12) << "20 at 2, and 10 at 1 with the slope of the others says 220/7";
}

TEST(a_peak, of_an_image_size_is_expected_from_points_of_that_size) {
  PeakModel model;
  const auto of_size = [](std::int64_t pixels) {
    auto one = of_mode(core::Mode::infer);
    one.inputs = {{.name = "x", .shape = {1, 3, pixels, pixels}}};
    return one;
  };
  // at 64 pixels a kernel whose weights take 28 more
  model.add("static", of_size(32), 1, 35);
  model.add("static", of_size(32), 32, 52);
  model.add("static", of_size(64), 32, 100);
  model.add("static", of_size(128), 16, 71);
  model.add("static", of_size(128), 512, 343);
  EXPECT_NEAR(*model.expected("static", of_size(32), 9), 35 + 8 * 17.0 / 31, 1e-9);
  const double slope = (17.0 / 31 + 272.0 / 496) / 2;
  EXPECT_NEAR(*model.expected("static", of_size(64), 4), 100 - 28 * slope, 1e-9);
  EXPECT_TRUE(model.expected("static", of_size(96), 40)) << "on the line of all";
}

TEST(a_peak, is_never_expected_to_be_less_at_a_larger_point) {
  PeakModel model;
  const auto infer = of_mode(core::Mode::infer);
  model.add("eager", infer, 1e6, 110e6);
  model.add("eager", infer, 9e6, 100e6);
  EXPECT_NEAR(*model.expected("eager", infer, 90e6), 100e6, 1);
}

}  // namespace
}  // namespace strata::plan
