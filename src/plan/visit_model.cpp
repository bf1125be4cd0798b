// SPDX-License-Identifier: Apache-2.0
#include "plan/visit_model.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "plan/training_time.hpp"
#include "stats/sample.hpp"

namespace strata::plan {
namespace {

// Guesses for two cores: seconds that come whatever the network, and iterations that a capture and a level make.
struct Guess {
  double capture_s, capture_iterations;
  double level_s, prepare_s, level_iterations;
};
constexpr Guess kWhole{
    .capture_s = 6, .capture_iterations = 60, .level_s = 2.5, .prepare_s = 3, .level_iterations = 40},
    kLight{.capture_s = 3, .capture_iterations = 20, .level_s = 1.2, .prepare_s = 3, .level_iterations = 25},
    kLater{.capture_s = 0, .capture_iterations = 0, .level_s = 0.8, .prepare_s = 0, .level_iterations = 15};
constexpr double kApart = 1.25;     // the work of visits that have a line of their own, the most over the least
constexpr std::size_t kFewest = 2;  // visits for a line of their own

const Guess& guess_of(VisitKind kind) {
  return kind == VisitKind::whole ? kWhole : kind == VisitKind::light ? kLight : kLater;
}

struct Pair {
  double x, y;
};

// y = a + b x with the least relative errors, a and b not below 0; nullopt: too few, or of about one x.
std::optional<double> on_line(const std::vector<Pair>& pairs, double x) {
  if (pairs.size() < kFewest) return std::nullopt;
  const auto by_x = [](const Pair& p, const Pair& q) { return p.x < q.x; };
  const auto [least, most] = std::minmax_element(pairs.begin(), pairs.end(), by_x);
  if (most->x <= kApart * least->x) return std::nullopt;
  double w = 0, wx = 0, wxx = 0, wy = 0, wxy = 0;  // weighted by 1 / y^2
  for (const auto& [px, py] : pairs) {
    const double weight = 1 / (py * py);
    w += weight;
    wx += weight * px;
    wxx += weight * px * px;
    wy += weight * py;
    wxy += weight * px * py;
  }
  const double determinant = w * wxx - wx * wx;
  double b = determinant > 0 ? (w * wxy - wx * wy) / determinant : 0;
  double a = (wy - b * wx) / w;
  if (b < 0) a = wy / w, b = 0;
  if (a < 0) a = 0, b = wxy / wxx;
  return a + b * x;
}

using Guessed = std::function<double(const VisitOf&)>;
using Alike = std::function<bool(const VisitOf&)>;  // as the visit that is asked for, of its kind

// By visits that are alike: on their line, or where they are too few, as many times the guess as they took. Else by
// others of the kind, by all others, by the guess.
double fitted(const std::vector<VisitSeen>& seen, const VisitOf& of, double VisitSeen::*part, const Alike& alike,
              const Guessed& guess) {
  std::vector<Pair> pairs;
  std::vector<double> alike_ratios, kind_ratios, ratios;
  for (const auto& element : seen) {
    const double seconds = element.*part;
    if (seconds <= 0) continue;
    const double ratio = seconds / guess(element.of);
    ratios.push_back(ratio);
    if (element.of.kind != of.kind || element.of.fresh != of.fresh) continue;
    kind_ratios.push_back(ratio);
    if (!alike(element.of)) continue;
    alike_ratios.push_back(ratio);
    pairs.push_back({element.of.flops, seconds});
  }
  if (const auto seconds = on_line(pairs, of.flops)) return *seconds;
  for (const auto* some : {&alike_ratios, &kind_ratios, &ratios})
    if (!some->empty()) return stats::median(*some) * guess(of);
  return guess(of);
}

}  // namespace

std::string_view name_of(VisitKind kind) {
  return kind == VisitKind::whole ? "whole" : kind == VisitKind::light ? "light" : "later";
}

double VisitModel::iteration_s(const VisitOf& of) const {
  return kBesidesS + (of.trains ? step_flops(of.flops, 1) : of.flops) / flops_per_s_;
}

double VisitModel::guessed_capture_s(const VisitOf& of) const {
  const auto& guess = guess_of(of.kind);
  return guess.capture_s + guess.capture_iterations * iteration_s(of);
}

double VisitModel::guessed_rest_s(const VisitOf& of) const {
  const auto& guess = guess_of(of.kind);
  return static_cast<double>(of.count) *
         (guess.level_s + (of.fresh ? guess.prepare_s : 0) + guess.level_iterations * iteration_s(of));
}

void VisitModel::add(VisitSeen seen) {
  seen_.push_back(std::move(seen));
}

double VisitModel::capture_s(const VisitOf& of) const {
  if (!of.fresh || of.kind == VisitKind::later) return 0;
  const auto alike = [&](const VisitOf& other) { return other.trains == of.trains; };  // whatever levels follow
  return fitted(seen_, of, &VisitSeen::capture_s, alike,
                [&](const VisitOf& other) { return guessed_capture_s(other); });
}

double VisitModel::rest_s(const VisitOf& of) const {
  const auto alike = [&](const VisitOf& other) { return other.levels == of.levels; };
  return fitted(seen_, of, &VisitSeen::rest_s, alike, [&](const VisitOf& other) { return guessed_rest_s(other); });
}

}  // namespace strata::plan
