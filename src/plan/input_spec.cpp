// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <optional>
#include <vector>

#include "common/nearest.hpp"
#include "common/outside.hpp"
#include "common/text.hpp"
#include "plan/option_values.hpp"

namespace strata::plan {
namespace {

const std::vector<std::string> kTypes{"float32", "float64", "int64", "int32", "uint8", "bool"};
constexpr std::int64_t kMostElements = std::int64_t{1} << 34;  // 64 GiB of float32: beyond it is a typing error

tl::unexpected<Error> bad(const std::string& text, const std::string& why) {
  return fail(fmt::format("--input {}: {}", text, why),
              "write [name=][dtype:]shape[:low..high], as 1x3x224x224, ids=int64:1x128:0..30521 or "
              "mask=float32:1x12:1 for a constant",
              Exit::usage);
}

std::optional<std::int64_t> integer(std::string_view text) {
  return number<std::int64_t>(text);
}

Result<std::vector<std::int64_t>> shape_of(const std::string& whole, const std::string& text) {
  std::vector<std::int64_t> shape;
  std::int64_t elements = 1;
  for (const auto& part : split(text, 'x')) {
    const auto extent = integer(part);
    if (!extent || *extent < 1)
      return bad(whole, fmt::format("'{}' in the shape '{}' is not a positive whole number", part, text));
    if (*extent > kMostElements / elements)
      return bad(whole, fmt::format("the shape '{}' has more than {} elements", text, kMostElements));
    elements *= *extent;
    shape.push_back(*extent);
  }
  if (shape.empty()) return bad(whole, "the shape is missing");
  return shape;
}

// "low..high", or one number: a constant. False: neither.
template <class Number>
bool set_range(core::Input& input, std::string_view text) {
  const auto dots = text.find("..");
  const auto low = number<Number>(text.substr(0, dots));
  const auto high = dots == std::string_view::npos ? low : number<Number>(text.substr(dots + 2));
  if (!low || !high || *low > *high) return false;
  if constexpr (std::is_integral_v<Number>)
    if (*low < -outside::most_whole || *high > outside::most_whole) return false;
  input.low = static_cast<double>(*low);
  input.high = static_cast<double>(*high);
  return true;
}

}  // namespace

Result<core::Input> parse_input(const std::string& text) {
  core::Input input;
  std::string rest = text;
  if (const auto equals = rest.find('='); equals != std::string::npos) {
    input.name = rest.substr(0, equals);
    if (equals == 0) return bad(text, "the name before '=' is empty");
    rest = rest.substr(equals + 1);
  }
  auto parts = split(rest, ':');
  if (parts.empty()) return bad(text, "the shape is missing");
  if (!parts[0].empty() && !integer(parts[0].substr(0, 1))) {
    bool known = false;
    for (const auto& type : kTypes) known = known || type == parts[0];
    if (!known) {
      const auto near = nearest(parts[0], kTypes);
      return bad(text, fmt::format("unknown type '{}'{}; allowed: {}", parts[0],
                                   near ? fmt::format(" (did you mean '{}'?)", *near) : "", fmt::join(kTypes, ", ")));
    }
    input.dtype = parts[0];
    parts.erase(parts.begin());
  }
  if (parts.empty() || parts.size() > 2)
    return bad(text, parts.empty() ? "the shape is missing" : "too many parts between ':'");
  input.shape = STRATA_TRY(shape_of(text, parts[0]));
  if (parts.size() == 2) {
    const bool real = input.dtype == "float32" || input.dtype == "float64";
    const bool good = real ? set_range<double>(input, parts[1]) : set_range<std::int64_t>(input, parts[1]);
    if (!good)
      return bad(text, fmt::format("the range '{}' is not low..high or one {}", parts[1],
                                   real ? "number" : "whole number up to 2^53"));
  }
  return input;
}

}  // namespace strata::plan
