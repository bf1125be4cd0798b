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

using Guessed = std::function<double(const Visit&)>;
using Alike = std::function<bool(const Visit&)>;  // as the visit that is asked for, of its kind

// By visits that are alike: on their line, or where they are too few, as many times the guess as they took. Else by
// others of the kind, by all others, by the guess.
double fitted(const std::vector<MeasuredVisit>& seen, const Visit& visit, double MeasuredVisit::*part,
              const Alike& alike, const Guessed& guess) {
  std::vector<Pair> pairs;
  std::vector<double> alike_ratios, kind_ratios, ratios;
  for (const auto& element : seen) {
    const double seconds = element.*part;
    if (seconds <= 0) continue;
    const double ratio = seconds / guess(element.visit);
    ratios.push_back(ratio);
    if (element.visit.kind != visit.kind || element.visit.fresh != visit.fresh) continue;
    kind_ratios.push_back(ratio);
    if (!alike(element.visit)) continue;
    alike_ratios.push_back(ratio);
    pairs.push_back({element.visit.flops, seconds});
  }
  if (const auto seconds = on_line(pairs, visit.flops)) return *seconds;
  for (const auto* some : {&alike_ratios, &kind_ratios, &ratios})
    if (!some->empty()) return stats::median(*some) * guess(visit);
  return guess(visit);
}

}  // namespace

std::string_view name_of(VisitKind kind) {
  return kind == VisitKind::whole ? "whole" : kind == VisitKind::light ? "light" : "later";
}

double VisitModel::iteration_s(const Visit& visit) const {
  return kBesidesS + (visit.trains ? step_flops(visit.flops, 1) : visit.flops) / flops_per_s_;
}

double VisitModel::guessed_capture_s(const Visit& visit) const {
  const auto& guess = guess_of(visit.kind);
  return guess.capture_s + guess.capture_iterations * iteration_s(visit);
}

double VisitModel::guessed_rest_s(const Visit& visit) const {
  const auto& guess = guess_of(visit.kind);
  return static_cast<double>(visit.count) *
         (guess.level_s + (visit.fresh ? guess.prepare_s : 0) + guess.level_iterations * iteration_s(visit));
}

void VisitModel::add(MeasuredVisit seen) {
  seen_.push_back(std::move(seen));
}

double VisitModel::capture_s(const Visit& visit) const {
  if (!visit.fresh || visit.kind == VisitKind::later) return 0;
  const auto alike = [&](const Visit& other) { return other.trains == visit.trains; };  // whatever levels follow
  return fitted(seen_, visit, &MeasuredVisit::capture_s, alike,
                [&](const Visit& other) { return guessed_capture_s(other); });
}

double VisitModel::rest_s(const Visit& visit) const {
  const auto alike = [&](const Visit& other) { return other.levels == visit.levels; };
  return fitted(seen_, visit, &MeasuredVisit::rest_s, alike, [&](const Visit& other) { return guessed_rest_s(other); });
}

}  // namespace strata::plan
