// SPDX-License-Identifier: Apache-2.0
// Names and numbers as C++ writes them.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace strata::generate {

// Identifiers that differ from each other, are no keywords and hold no two underscores in a row.
class Names {
 public:
  // "layer1.0.conv1" -> "layer1_0_conv1"; with a number behind it if that is taken.
  std::string unique(std::string_view requested);

 private:
  std::set<std::string> taken_;
};

std::string identifier(std::string_view text);
std::string braces(const std::vector<std::int64_t>& numbers);    // "{1, 64}"
std::string brackets(const std::vector<std::int64_t>& numbers);  // "[1, 64]", for comments
std::string float_literal(double number);                        // "0.5F"; infinities by std::numeric_limits
std::string double_literal(double number);
std::string grouped(std::int64_t number);  // "802,816"

}  // namespace strata::generate
