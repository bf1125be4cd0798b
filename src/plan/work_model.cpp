// SPDX-License-Identifier: Apache-2.0
#include "plan/work_model.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "common/outside.hpp"

namespace strata::plan {
namespace {

// How many times as much `at` is as `other`, by batch and pixels; what one of them does not say is taken as equal.
double times_as_much(const SweepPosition& at, const SweepPosition& other) {
  double ratio = 1;
  if (at.batch && other.batch && *other.batch > 0)
    ratio *= static_cast<double>(*at.batch) / static_cast<double>(*other.batch);
  const auto pixels = [](const auto& size) {
    return static_cast<double>(size->first) * static_cast<double>(size->second);
  };
  if (at.size && other.size && pixels(other.size) > 0) ratio *= pixels(at.size) / pixels(other.size);
  return ratio;
}

}  // namespace

Work work_of(const nlohmann::json& info) {
  return {.flops = std::max(0.0, outside::number_or(info, "flops")),
          .moving_bytes = outside::number_or(info, "activation_bytes") + outside::number_or(info, "input_bytes"),
          .weight_bytes = outside::number_or(info, "weight_bytes")};
}

SweepPosition sweep_position(const core::Case& question) {
  return {question.mode, question.batch, question.image_size()};
}

SweepPosition sweep_position(const core::CaseSpec& spec) {
  return {spec.mode, spec.batch, spec.size};
}

void WorkModel::add(const SweepPosition& at, const Work& work) {
  seen_.emplace_back(at, work);
}

std::optional<Work> WorkModel::expected(const SweepPosition& at) const {
  const auto distance = [&](const auto& element) {
    return std::tuple(element.first.mode != at.mode, std::abs(std::log(times_as_much(at, element.first))));
  };
  const auto nearest = std::min_element(seen_.begin(), seen_.end(),
                                        [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
  if (nearest == seen_.end()) return std::nullopt;
  const double ratio = times_as_much(at, nearest->first);
  auto work = nearest->second;
  work.flops *= ratio;
  work.moving_bytes *= ratio;
  return work;
}

}  // namespace strata::plan
