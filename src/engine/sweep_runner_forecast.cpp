// SPDX-License-Identifier: Apache-2.0
// What a sweep says of minutes and memory before it begins, and how far off that was at its end.
#include <fmt/format.h>

#include <algorithm>

#include "common/interrupt.hpp"
#include "common/state.hpp"
#include "engine/sweep_runner.hpp"
#include "report/format.hpp"

namespace strata::engine {
void SweepRunner::capture_smallest() {
  const auto* spec = forecast_.knows_work() ? nullptr : forecast_.smallest();
  if (spec == nullptr || interrupted()) return;
  for (const auto& point : points_)
    if (point->spec == *spec) {
      (void)capture(*point);  // its own visit says what is wrong with it
      return;
    }
}

void SweepRunner::say_plan() {
  std::vector<core::CaseSpec> specs;
  for (const auto& point : points_) specs.push_back(point->spec);
  const auto all = forecast_.points(specs);
  double seconds = 0, bytes = 0;
  PlannedSweep plan;
  for (std::size_t i = 0; i < all.size(); ++i) {
    points_[i]->planned = all[i];
    seconds += all[i].seconds;
    bytes = std::max(bytes, all[i].bytes.value_or(0));
    plan.points.push_back({.point = words(plan::point_of(specs[i])), .seconds = all[i].seconds, .bytes = all[i].bytes});
  }
  if (interrupted()) return;
  const auto needed =
      bytes > 0 ? fmt::format("; the levels of a point need up to {} together", report::size(bytes)) : "";
  plan.summary = fmt::format("plan: {} point{} in {} walk{}, {}, {}{}", all.size(), all.size() == 1 ? "" : "s", walks_,
                             walks_ == 1 ? "" : "s", report::about(seconds), forecast_.source(), needed);
  events_.planned(plan);
}

void SweepRunner::note_visit(Point& point, bool first, double predicted_s, double took_s) {
  point.predicted_s += predicted_s;
  point.took_s += took_s;
  ++point.visits;
  if (point.begun_again) return;  // like no visit that is predicted
  const double capture_s = first ? point.capture_s : 0;
  plan::MeasuredVisit seen{.visit = forecast_.visit_of(point.spec, first)};
  seen.visit.fresh = first && !point.captured->bundle.cached;
  seen.capture_s = seen.visit.fresh ? capture_s : 0;
  seen.rest_s = std::max(0.0, took_s - measured_s_ - capture_s);
  stored_visits_.push_back(facts_of(seen));
  forecast_.learn(seen);
}

// Of points that had all their visits from this process.
void SweepRunner::note_forecast_errors() {
  stored_.settings().visited = {forecast_.model(), stored_visits_};
  std::vector<Prediction> planned, on_the_way, memory;
  for (const auto& point : points_) {
    if (point->missing || point->visits != walks_ || point->planned.seconds <= 0) continue;
    planned.push_back({point->planned.seconds, point->took_s});
    on_the_way.push_back({point->predicted_s, point->took_s});
    const auto needed = needed_bytes(*point);
    if (needed && point->planned.bytes) memory.push_back({*point->planned.bytes, *needed});
  }
  if (planned.empty()) return;
  auto words =
      fmt::format("predicted minutes were within a factor of 2 for {} of {} points, and for {} as corrected on the way",
                  within_two(planned), planned.size(), within_two(on_the_way));
  if (!memory.empty())
    words += fmt::format("; predicted memory for {} of {} at which it was measured", within_two(memory), memory.size());
  stored_.settings().forecast = words;
  events_.note(words);
}

// Of all its levels together; nullopt: one was not measured alone, or dropped out.
std::optional<double> SweepRunner::needed_bytes(const Point& point) const {
  if (!point.open) return std::nullopt;
  double sum = 0;
  for (const auto& participant : point.open->participants()) {
    const auto state = participant.row.state;
    if (state == State::unavailable || state == State::unsupported) continue;
    const auto& memory = participant.row.memory;
    const auto peak = memory ? memory->peak_private_bytes.value_or(0) : 0;
    if (!participant.active || peak <= 0) return std::nullopt;
    sum += static_cast<double>(peak);
  }
  return sum > 0 ? std::optional(sum) : std::nullopt;
}

}  // namespace strata::engine
