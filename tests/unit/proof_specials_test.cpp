// SPDX-License-Identifier: Apache-2.0
// What becomes of a NaN and of an infinity in an input: numbers where eager has none are told.
#include <gtest/gtest.h>

#include <cmath>

#include "proof/special_values.hpp"
#include "unit/proof_bundle.hpp"

namespace strata::proof {
namespace {

using testing::Tensors;

const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();

// Answers to the input with a NaN and to that with an infinity.
SafeTensors answers(const std::vector<double>& to_nan, const std::vector<double>& to_infinity) {
  Tensors tensors;
  tensors.add_as("0/y", "F32", {static_cast<std::int64_t>(to_nan.size())}, to_nan);
  tensors.add_as("1/y", "F32", {static_cast<std::int64_t>(to_infinity.size())}, to_infinity);
  const auto path = std::filesystem::temp_directory_path() / fmt::format("strata_specials_{}.safetensors", getpid());
  tensors.write(path);
  auto opened = SafeTensors::open(path);
  std::filesystem::remove(path);
  if (!opened) throw std::runtime_error(opened.error().what);
  return *opened;
}

TEST(Specials, are_kept_where_no_number_stands_for_one) {
  const auto eager = answers({1, nan, nan}, {1, inf, -inf});
  EXPECT_EQ(lost_specials(eager, eager), "");
  EXPECT_EQ(lost_specials(eager, answers({nan, nan, nan}, {1, nan, inf})), "") << "spread, and of another kind";
}

TEST(Specials, that_become_numbers_are_counted) {
  const auto eager = answers({1, nan, nan}, {1, inf, nan});
  EXPECT_EQ(lost_specials(eager, answers({1, 0, nan}, {1, inf, nan})),
            "drops NaN: 1 of 2 values are numbers where eager's are NaN or infinite");
  EXPECT_EQ(lost_specials(eager, answers({1, 0, 3}, {1, 2, inf})),
            "drops NaN: 2 of 2 values are numbers where eager's are NaN or infinite; "
            "drops infinity: 1 of 2 values are numbers where eager's are NaN or infinite");
}

TEST(Specials, are_not_known_where_an_answer_has_another_shape) {
  EXPECT_EQ(lost_specials(answers({1, nan}, {1, inf}), answers({1}, {1})), std::nullopt);
}

}  // namespace
}  // namespace strata::proof
