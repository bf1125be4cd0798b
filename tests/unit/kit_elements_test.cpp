// SPDX-License-Identifier: Apache-2.0
// Calculations on elements of any type at the edges of their types, as PyTorch has them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kit/elements.hpp"
#include "kit/indexing.hpp"

namespace kit {
namespace {
using ::testing::ElementsAre;

constexpr auto least = std::numeric_limits<std::int64_t>::min();

std::vector<std::int64_t> whole(Calculation how, std::vector<std::int64_t> x, std::vector<std::int64_t> y) {
  std::vector<std::int64_t> result(x.size());
  const elements::Source left{.data = x.data(), .type = Type::int64, .strides = {1}},
      right{.data = y.data(), .type = Type::int64, .strides = {y.size() == 1 ? 0 : 1}};
  elements::run(how, false, {left, right}, {static_cast<Extent>(x.size())}, result.data(), Type::int64);
  return result;
}

TEST(Elements, whole_numbers_wrap_around_and_round_down) {
  EXPECT_THAT(whole(Calculation::add, {least, 5}, {-1}), ElementsAre(std::numeric_limits<std::int64_t>::max(), 4));
  EXPECT_THAT(whole(Calculation::div_floor, {-7, 7, -8, least}, {2, -2, 2, -1}), ElementsAre(-4, -4, -4, least));
  EXPECT_THAT(whole(Calculation::div_trunc, {-7, 7}, {2, -2}), ElementsAre(-3, -3));
  EXPECT_THAT(whole(Calculation::remainder, {-7, 7, 6}, {3, -3, 3}), ElementsAre(2, -2, 0));
  EXPECT_THAT(whole(Calculation::fmod, {-7, least}, {3, -1}), ElementsAre(-1, 0));
  EXPECT_THAT(whole(Calculation::pow, {3, 2, -1, 2}, {4, 0, -3, -1}), ElementsAre(81, 1, -1, 0));
}

TEST(Elements, a_whole_number_that_is_divided_by_zero_is_an_error) {
  EXPECT_THROW(whole(Calculation::div_floor, {1, 2}, {1, 0}), std::runtime_error);
  EXPECT_THROW(whole(Calculation::remainder, std::vector<std::int64_t>(9000, 1), {0}), std::runtime_error);
}

TEST(Elements, a_float_out_of_range_and_no_number_are_the_least_whole_number) {
  const std::vector<float> x{1e30F, std::nanf(""), -2.9F, 9.2e18F};
  std::vector<std::int64_t> result(x.size());
  elements::run(Calculation::to, true, {{.data = x.data(), .type = Type::float32, .strides = {1}}}, {4}, result.data(),
                Type::int64);
  EXPECT_THAT(result, ElementsAre(least, least, -2, 9200000267938955264));
}

TEST(Elements, smaller_types_wrap_and_truths_are_one_or_zero) {
  const std::vector<std::int32_t> x{300, -1, 0};
  std::vector<std::uint8_t> bytes(3), truths(3);
  const elements::Source source{.data = x.data(), .type = Type::int32, .strides = {1}};
  elements::run(Calculation::to, false, {source}, {3}, bytes.data(), Type::uint8);
  elements::run(Calculation::to, false, {source}, {3}, truths.data(), Type::boolean);
  EXPECT_THAT(bytes, ElementsAre(44, 255, 0));
  EXPECT_THAT(truths, ElementsAre(1, 1, 0));
}

TEST(Indexing, axes_that_are_picked_stay_in_place_only_where_they_are_neighbours) {
  const auto shapes = [](const indexing::Picking& picking) {
    return std::tuple(picking.before, picking.broadcast, picking.after);
  };
  using Dims = std::vector<Extent>;
  const indexing::List rows{true, Type::int64, {3, 1}}, columns{true, Type::int64, {2}}, none;
  EXPECT_EQ(shapes(indexing::picking({4, 5, 6}, {none, rows, columns}, Type::float32)),
            std::tuple(Dims{4}, Dims({3, 2}), Dims{}));
  EXPECT_EQ(shapes(indexing::picking({4, 5, 6}, {rows, none, columns}, Type::float32)),
            std::tuple(Dims{}, Dims({3, 2}), Dims{5}));
}

}  // namespace
}  // namespace kit
