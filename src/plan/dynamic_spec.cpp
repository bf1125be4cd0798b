// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "common/text.hpp"
#include "plan/option_values.hpp"

namespace strata::plan {
namespace {

constexpr int kLargest = 1 << 20;  // as --batch

}  // namespace

Result<core::OpenBatch> parse_dynamic(const std::string& text) {
  const auto bad = [&](const std::string& why, const std::string& hint) {
    return fail(fmt::format("--dynamic {}: {}", text, why), hint, Exit::usage);
  };
  const auto equals = text.find('='), dots = text.find("..");
  if (equals == std::string::npos || dots == std::string::npos || dots < equals)
    return bad("this is no range", "write batch=LOW..HIGH, as batch=1..32");
  const auto axis = text.substr(0, equals);
  if (axis != "batch")
    return bad(fmt::format("unknown '{}'; allowed: batch", axis), "only the batch can vary: write batch=1..32");
  const auto low = number<int>(std::string_view(text).substr(equals + 1, dots - equals - 1)),
             high = number<int>(std::string_view(text).substr(dots + 2));
  if (!low || !high || *low < 1 || *high > kLargest)
    return bad(fmt::format("allowed: whole numbers from 1 to {}", kLargest), "write batch=LOW..HIGH, as batch=1..32");
  if (*low > *high)
    return bad(fmt::format("the range is empty, {} is above {}", *low, *high),
               fmt::format("write batch={}..{}", *high, *low));
  if (*low == *high)
    return bad("the range holds one size",
               fmt::format("--batch {} measures that one; a range has two ends, as batch=1..32", *low));
  const auto sizes = sizes_between(*low, *high);
  return core::OpenBatch{.low = *low, .high = *high, .sizes = {sizes.begin(), sizes.end()}};
}

std::vector<int> sizes_between(int low, int high) {
  std::vector<int> sizes{low};
  for (int power = 1; power < high; power *= 2)
    if (power > low) sizes.push_back(power);
  sizes.push_back(high);
  return sizes;
}

}  // namespace strata::plan
