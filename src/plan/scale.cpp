// SPDX-License-Identifier: Apache-2.0
#include "plan/scale.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "common/nearest.hpp"
#include "common/text.hpp"

namespace strata::plan {
namespace {

constexpr double kLeastImages = 0.01;  // of one factor; fewer would say nothing of an epoch

std::optional<double> share_of(const std::string& text) {
  const auto value = number<double>(text);
  return value && *value > 0 && *value <= 1 ? value : std::nullopt;
}

int part_of(int count, double share) {
  return std::max(1, static_cast<int>(std::lround(count * share)));
}

}  // namespace

Result<Scale> parse_scale(const std::string& text) {
  constexpr const char* form = "write shares above 0 and at most 1: epochs=0.1,repeats=0.3,images=0.01, or one: 0.01";
  Scale scale;
  if (text.find('=') == std::string::npos) {
    scale.factor = share_of(text);
    if (!scale.factor) return fail(fmt::format("--scale {}: no share", text), form, Exit::usage);
    return scale;
  }
  std::map<std::string, double*> parts{
      {"epochs", &scale.epochs}, {"images", &scale.images}, {"repeats", &scale.repeats}};
  for (const auto& part : split(text, ',')) {
    const auto equals = part.find('=');
    const auto name = part.substr(0, equals);
    const auto it = parts.find(name);
    if (it == parts.end()) {
      const auto near = nearest(name, {"epochs", "images", "repeats"});
      return fail(fmt::format("--scale {}: '{}' is not one of: epochs, repeats, images{}", text, name,
                              near ? fmt::format(" (did you mean '{}'?)", *near) : ""),
                  form, Exit::usage);
    }
    if (!it->second)
      return fail(fmt::format("--scale {}: {} is given twice", text, name), "name each once", Exit::usage);
    const auto share = equals == std::string::npos ? std::nullopt : share_of(part.substr(equals + 1));
    if (!share) return fail(fmt::format("--scale {}: no share in '{}'", text, part), form, Exit::usage);
    *it->second = *share;
    it->second = nullptr;
  }
  return scale;
}

ScaledTraining scaled(const Scale& scale, int epochs, int repeats) {
  if (!scale.factor) return {part_of(epochs, scale.epochs), part_of(repeats, scale.repeats), scale.images};
  ScaledTraining left;
  left.repeats = part_of(repeats, *scale.factor);
  double still = *scale.factor * repeats / left.repeats;  // that the others have to be cut by
  left.images = std::clamp(still, kLeastImages, 1.0);
  still /= left.images;
  left.epochs = part_of(epochs, std::min(1.0, still));
  return left;
}

std::int64_t scaled_images(double share, std::int64_t all, std::int64_t batch) {
  const auto part = static_cast<std::int64_t>(std::llround(share * static_cast<double>(all)));
  return std::min(all, std::max(part, batch));
}

}  // namespace strata::plan
