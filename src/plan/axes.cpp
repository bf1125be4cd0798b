// SPDX-License-Identifier: Apache-2.0
#include "plan/axes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/outside.hpp"
#include "common/text.hpp"

namespace strata::plan {
namespace {

tl::unexpected<Error> bad(const std::string& option, const std::string& text, const std::string& why, std::string hint,
                          std::string allowed = {}) {
  return fail(fmt::format("{} {}: {}", option, text, why), std::move(hint), Exit::usage,
              {option, outside::shown(text), std::move(allowed)});
}

const char* const kForms =
    "write 8, several as 1,8,32, or a range: 1..4 (each), 1..32*2 (doubling), 1..9+2 (steps of 2)";

// LOW..HIGH, LOW..HIGH*FACTOR or LOW..HIGH+STEP.
struct Range {
  int low = 0, high = 0, factor = 1, step = 1;
};

Result<Range> range_of(const std::string& option, const std::string& text, const std::string& part) {
  const auto dots = part.find("..");
  const auto mark = part.find_first_of("*+", dots);
  const auto low = number<int>(part.substr(0, dots));
  const auto high = number<int>(part.substr(dots + 2, mark == std::string::npos ? mark : mark - dots - 2));
  if (!low || !high) return bad(option, text, fmt::format("'{}' is not a range", part), kForms);
  if (*low > *high) return bad(option, text, fmt::format("{} is above {}", *low, *high), "begin with the smaller one");
  Range range{.low = *low, .high = *high};
  if (mark == std::string::npos) return range;
  const auto by = number<int>(part.substr(mark + 1));
  const bool multiplies = part[mark] == '*';
  if (!by || *by < (multiplies ? 2 : 1))
    return bad(option, text, fmt::format("'{}' continues by '{}'", part, part.substr(mark)),
               "a factor is 2 or more, as *2; a step 1 or more, as +8");
  if (multiplies && *low < 1) return bad(option, text, "a range by a factor begins at 1 or more", kForms);
  (multiplies ? range.factor : range.step) = *by;
  return range;
}

Result<std::vector<int>> values_of(const std::string& option, const std::string& text, const std::string& part) {
  if (part.find("..") == std::string::npos) {
    const auto value = number<int>(part);
    if (!value) return bad(option, text, fmt::format("'{}' is not a whole number", part), kForms);
    return std::vector{*value};
  }
  const auto range = STRATA_TRY(range_of(option, text, part));
  std::vector<int> values;
  for (std::int64_t value = range.low; value <= range.high && values.size() <= most_values;
       value = range.factor > 1 ? value * range.factor : value + range.step)
    values.push_back(static_cast<int>(value));
  return values;
}

}  // namespace

Result<std::vector<int>> whole_numbers(const std::string& option, const std::string& text, int low, int high) {
  std::vector<int> all;
  for (const auto& part : split(text, ',')) {
    const auto values = values_of(option, text, part);
    if (!values) return values;
    for (const int value : *values) {
      if (value < low || value > high)
        return bad(option, text, fmt::format("{} is outside; allowed: {} to {}", value, low, high), "",
                   fmt::format("{} to {}", low, high));
      if (std::find(all.begin(), all.end(), value) != all.end())
        return bad(option, text, fmt::format("{} is given twice", value), "name each once");
      all.push_back(value);
    }
    if (all.size() > most_values)
      return bad(option, text, fmt::format("more than {} values", most_values), "take larger steps, as 1..1024*2");
  }
  if (all.empty()) return bad(option, text, "no value", kForms);
  return all;
}

Result<std::vector<ImageSize>> image_sizes(const std::string& option, const std::string& text) {
  std::vector<ImageSize> all;
  for (const auto& part : split(text, ',')) {
    const auto by = part.find('x');
    std::vector<ImageSize> sizes;
    if (by != std::string::npos) {
      const auto height = number<int>(part.substr(0, by)), width = number<int>(part.substr(by + 1));
      if (!height || !width)
        return bad(option, text, fmt::format("'{}' is not a size", part), "write 224, or HEIGHTxWIDTH as 224x320");
      sizes.push_back({*height, *width});
    } else {
      const auto edges = STRATA_TRY(values_of(option, text, part));
      for (const int edge : edges) sizes.push_back({edge, edge});
    }
    for (const auto& size : sizes) {
      if (std::min(size.height, size.width) < 1 || std::max(size.height, size.width) > largest_image)
        return bad(option, text, fmt::format("'{}' is outside; allowed: 1 to {} pixels", part, largest_image), "",
                   fmt::format("1 to {} pixels", largest_image));
      if (std::find(all.begin(), all.end(), size) != all.end())
        return bad(option, text, fmt::format("{}x{} is given twice", size.height, size.width), "name each once");
      all.push_back(size);
    }
    if (all.size() > most_values)
      return bad(option, text, fmt::format("more than {} sizes", most_values), "take larger steps, as 32..512*2");
  }
  if (all.empty()) return bad(option, text, "no size", "write 224, or several as 64,128");
  return all;
}

}  // namespace strata::plan
