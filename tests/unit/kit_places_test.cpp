// SPDX-License-Identifier: Apache-2.0
// Elements in order, and written to computed places, at the edges: equal elements, NaN, numbers out of range.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "kit/columns.hpp"
#include "kit/resize.hpp"
#include "kit/sorting.hpp"
#include "kit/writing.hpp"

namespace kit {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::int64_t> places_of(const std::vector<float>& x, const sorting::Order& order) {
  const auto count = static_cast<Extent>(x.size());
  std::vector<std::int64_t> places(static_cast<std::size_t>(order.most < 0 ? count : order.most));
  sorting::run(x.data(), Type::float32, {1, count, 1}, order, nullptr, places.data());
  return places;
}

TEST(Sorting, equal_elements_stay_as_they_were_and_what_is_no_number_is_the_largest) {
  const float none = std::nanf("");
  EXPECT_THAT(places_of({2, none, 1, 2, none, 1}, {}), ElementsAre(2, 5, 0, 3, 1, 4));
  EXPECT_THAT(places_of({2, none, 1, 2, none, 1}, {.descending = true}), ElementsAre(1, 4, 0, 3, 2, 5));
  EXPECT_THAT(places_of({2, none, 1, 3}, {.descending = true, .most = 2}), ElementsAre(1, 3));
  EXPECT_THAT(places_of({2, none, 1, 3}, {.descending = false, .most = 2}), ElementsAre(2, 0));
}

TEST(Sorting, lines_lie_across_other_axes_and_keep_their_type) {
  const std::vector<std::int64_t> x{5, 1, 3, 2, 4, 6};  // [3, 2], along the first axis
  std::vector<std::int64_t> values(6), places(6);
  sorting::run(x.data(), Type::int64, {1, 3, 2}, {}, values.data(), places.data());
  EXPECT_THAT(values, ElementsAre(3, 1, 4, 2, 5, 6));
  EXPECT_THAT(places, ElementsAre(1, 0, 2, 1, 0, 2));
}

TEST(Writing, of_two_elements_for_one_place_the_last_stays_or_both_add_up) {
  const std::vector<float> self{10, 20, 30}, source{1, 2, 4};
  const std::vector<std::int64_t> numbers{2, 0, 2};
  std::vector<float> result(3);
  indexing::Scattering scattering{.shape = {3}, .of_numbers = {3}, .of_source = {3}};
  scattering.run(self.data(), numbers.data(), source.data(), result.data());
  EXPECT_THAT(result, ElementsAre(2, 20, 4));
  scattering.adds = true;
  scattering.run(self.data(), numbers.data(), source.data(), result.data());
  EXPECT_THAT(result, ElementsAre(12, 20, 35));
}

TEST(Writing, a_number_out_of_range_is_named) {
  const std::vector<float> self(3), source(1);
  const std::vector<std::int32_t> numbers{3};
  std::vector<float> result(3);
  const indexing::Scattering scattering{
      .shape = {3}, .of_numbers = {1}, .of_source = {1}, .type_of_numbers = Type::int32};
  EXPECT_THAT([&] { scattering.run(self.data(), numbers.data(), source.data(), result.data()); },
              testing::ThrowsMessage<std::runtime_error>(HasSubstr("index 3 ")));
}

TEST(Writing, whole_numbers_wrap_around_and_truths_stay_truths) {
  const std::vector<std::uint8_t> from{200, 1};
  std::vector<std::uint8_t> bytes{100, 1}, truths{1, 0};
  indexing::write(Type::uint8, from.data(), 0, 2, bytes.data(), 0, true);
  indexing::write(Type::boolean, from.data(), 1, 1, truths.data(), 0, true);
  EXPECT_THAT(bytes, ElementsAre(44, 2));
  EXPECT_THAT(truths, ElementsAre(1, 0));
}

TEST(Columns, putting_together_adds_a_pixel_as_often_as_windows_have_it) {
  const WindowsOfImages windows{
      .images = 1, .size = {3, 3}, .kernel = {2, 2}, .dilation = {1, 1}, .padding = {0, 0}, .stride = {1, 1}};
  const std::vector<float> image{1, 2, 3, 4, 5, 6, 7, 8, 9};
  std::vector<float> columns(16), again(9);
  windows.take_apart(image.data(), columns.data());
  EXPECT_THAT(std::vector<float>(columns.begin(), columns.begin() + 4), ElementsAre(1, 2, 4, 5));
  windows.put_together(columns.data(), again.data());
  EXPECT_THAT(again, ElementsAre(1, 4, 3, 8, 20, 12, 7, 16, 9));
}

TEST(Resizing, the_gradient_hands_all_of_each_new_pixel_back) {
  for (const auto how : {Resizing::nearest, Resizing::nearest_exact, Resizing::linear, Resizing::cubic})
    for (const Extent to : {3, 5, 13}) {
      const auto shares = resizing::shares_of(resizing::taps_along(how, 5, to, 0, false), resizing::taps_of(how), 5);
      double all = 0;
      for (const float share : shares.share) all += static_cast<double>(share);
      EXPECT_EQ(shares.begin.size(), 6);
      EXPECT_NEAR(all, static_cast<double>(to), 1e-5);
    }
}

}  // namespace
}  // namespace kit
