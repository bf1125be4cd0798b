// SPDX-License-Identifier: Apache-2.0
#include "engine/sweep_runner.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "analysis/blocks.hpp"
#include "analysis/metrics.hpp"
#include "analysis/warnings.hpp"
#include "common/interrupt.hpp"
#include "common/state.hpp"
#include "core/bundle_info.hpp"
#include "measure/machine_facts.hpp"
#include "stats/schedule.hpp"

namespace strata::engine {
namespace {

constexpr double kSameLimit = 0.9;  // a level that had this share of today's limit would run out again

}  // namespace

SweepRunner::SweepRunner(const SweepRequest& request, const BatchBounds& bounds, Prepared& ready,
                         const plan::Grid& grid, measure::MachineFacts& facts, store::Store& store, StoredRun& stored,
                         EventSink& events)
    : request_(request),
      ready_(ready),
      grid_(grid),
      facts_(facts),
      store_(store),
      stored_(stored),
      events_(events),
      walks_(ready.setting.effort.restarts),
      total_s_(ready.setting.options.budget_s),
      visit_s_(visit_seconds(request, ready.setting.effort)),
      forecast_(request, ready, grid, store.path()),
      bounds_(bounds) {
  if (!request.find_batch.empty()) {
    if (auto rule = analysis::parse_batch_rule(request.find_batch)) rule_ = *rule;
    stored.settings().find_batch = request.find_batch;
  }
  for (const auto& spec : ready.specs) add_point(spec);
  if (const auto* before = ready.setting.resumed) stored_visits_ = before->settings.visited.visits;
}

SweepRunner::Point* SweepRunner::add_point(const core::CaseSpec& spec) {
  points_.push_back(std::make_unique<Point>());
  points_.back()->spec = spec;
  return points_.back().get();
}

double SweepRunner::elapsed() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

Result<measure::Outcome> SweepRunner::run() {
  STRATA_TRY(remember_exhaustion());
  capture_smallest();
  say_plan();
  bool measured = false;
  for (int number = 0; number < walks_ && !spent_ && !interrupted(); ++number) {
    auto walked = walk(number);
    warm_.end();
    if (!walked) return tl::unexpected(walked.error());
  }
  if (const auto error = peaks_.worst_error())
    events_.note(fmt::format("memory: foreseen from the other points, the measured ones are off by at most {:.0f}%",
                             100 * *error));
  note_forecast_errors();
  measure::Outcome all;
  for (const auto& point : points_) {
    measured = measured || point->open || point->before > 0;
    all.failed = all.failed || point->outcome.failed;
    all.missing = all.missing || point->outcome.missing;
  }
  if (first_error_ && !measured) return tl::unexpected(*first_error_);
  return all;
}

// The first walk goes in the order of the plan, corners first, so that a budget that ends early has seen the ends;
// each later one in an order of its own, so that no point has its neighbours' drift in every walk.
std::vector<SweepRunner::Point*> SweepRunner::order_of(int number) {
  std::vector<Point*> order;
  for (const auto& point : points_) {
    const auto is_active = [](const measure::Participant& participant) { return participant.active; };
    const bool over =
        point->open && std::none_of(point->open->participants().begin(), point->open->participants().end(), is_active);
    if (!point->missing && !over) order.push_back(point.get());
  }
  stats::Random random(ready_.setting.order_seed + static_cast<std::uint64_t>(number));
  if (number > 0) random.shuffle(order);
  return order;
}

Result<void> SweepRunner::walk(int number) {
  auto order = order_of(number);
  for (;;) {
    STRATA_TRY(visit_all(order, number));
    if (number > 0 || !rule_ || spent_ || interrupted()) return {};
    order = search_on();
    if (order.empty()) return {};
  }
}

Result<void> SweepRunner::visit_all(const std::vector<Point*>& order, int number) {
  for (std::size_t i = 0; i < order.size() && !interrupted(); ++i) {
    auto& point = *order[i];
    const bool seen = point.before > number;
    if (!seen && !give_time(number, std::span(order).subspan(i))) {
      events_.note(fmt::format("the budget is spent: {} of {} points were reached in walk {} of {}", i, order.size(),
                               number + 1, walks_));
      stored_.spend_budget();
      spent_ = true;
      return {};
    }
    events_.note(fmt::format("walk {} of {}, point {} of {}: {}", number + 1, walks_, i + 1, order.size(),
                             words(plan::point_of(point.spec))));
    const auto begun = elapsed();
    const bool first = !point.open, captured_before = point.captured != nullptr;
    const double predicted_s = measured_s_ + forecast_.beside_s(point.spec, first);
    STRATA_TRY(visit(point, number));
    if (point.before > number || point.missing || interrupted()) continue;  // not a whole visit
    const double capture_s = first ? point.capture_s : 0;
    const bool proven_now = first && point.before == 0;  // else by an earlier process of this run
    note_visit(point, proven_now, predicted_s, elapsed() - begun + (captured_before ? capture_s : 0));
    ++visits_;
    STRATA_TRY(remember_exhaustion());
  }
  return {};
}

std::vector<SweepRunner::Point*> SweepRunner::search_on() {
  using Curves = std::map<std::string, analysis::BatchCurve>;  // by level
  struct Search {
    core::CaseSpec spec;  // of any batch
    Curves curves;
  };
  std::map<plan::GridPoint, Search> all;  // by the other axes
  for (const auto& point : points_) {
    auto others = plan::point_of(point->spec);
    others.batch.reset();
    auto& curves = all.try_emplace(others, Search{.spec = point->spec, .curves = {}}).first->second.curves;
    const auto batch = point->spec.batch.value_or(1);
    for (const auto& level : ready_.levels)
      if (!level.harness) curves[level.name()][batch].runs = false;
    const auto look = [&](const store::Row& row) {
      if (!curves.contains(row.name())) return;
      const auto& question = point->captured->bundle.question;
      curves[row.name()][batch] =
          analysis::batch_observation(row, question, analysis::core_budget_of(question, ready_.setting.machine));
    };
    if (point->open)
      for (const auto& participant : point->open->participants()) look(participant.row);
    else if (point->stored)
      for (const auto& row : point->stored->rows) look(row);
  }
  std::vector<Point*> added;
  for (auto& [others, search] : all) {
    std::set<std::int64_t> batches;
    for (const auto& [level, curve] : search.curves)
      if (const auto batch = analysis::next_batch(*rule_, curve, bounds_.lowest, bounds_.highest);
          batch && !curve.contains(*batch))
        batches.insert(*batch);
    for (const auto batch : batches) {
      search.spec.batch = batch;
      added.push_back(add_point(search.spec));
    }
  }
  return added;
}

// The next visit's measured time: an equal share of what is left, less what visits take beside it; who looks until a
// level wins finds winners that are none. False: nothing is left; the first visit is made all the same.
bool SweepRunner::give_time(int number, std::span<Point* const> left) {
  measured_s_ = visit_s_;
  if (total_s_) {
    const double left_s = *total_s_ - elapsed();
    if (left_s <= 0 && visits_ > 0) return false;
    const int later_walks = walks_ - number - 1;
    double beside = 0;
    if (forecast_.visits() > 0) {  // a guess alone would take time from the first point
      for (const auto* point : left) beside += forecast_.beside_s(point->spec, !point->open);
      for (const auto& point : points_) beside += later_walks * forecast_.beside_s(point->spec, false);
    }
    const double visits = static_cast<double>(left.size()) + static_cast<double>(points_.size()) * later_walks;
    if (!request_.point_time_s) measured_s_ = std::max(kLeastMeasured_s, (left_s - beside) / visits);
  }
  auto& effort = ready_.setting.effort;
  effort.restarts = number + 1;
  effort.budget_s = measured_s_ * effort.restarts;
  return true;
}

Result<void> SweepRunner::visit(Point& point, int number) {
  const bool first = !point.open;
  if (first)
    if (auto opened = open(point); !opened) return interrupted() ? Result<void>() : note_missing(point, opened.error());
  if (point.before > number || interrupted()) return {};
  auto outcome = point.open->visit();
  warm_.unload();
  if (outcome && !interrupted() && is_doubtful(point)) {
    auto again = STRATA_TRY(open_with_all_runs(point, number));
    if (again) outcome = point.open->visit();
  }
  if (!outcome) {
    stored_.cut_short();
    return note_missing(point, outcome.error());
  }
  point.outcome = *outcome;
  if (first)
    for (const auto& participant : point.open->participants()) learn_memory(point.captured->bundle, participant.row);
  return analysis::store_metrics(store_, ready_.setting.run_id, key_of(point.captured->bundle.question));
}

bool SweepRunner::is_doubtful(const Point& point) {
  const auto& bundle = point.captured->bundle;
  bool doubtful = false;
  for (const auto& participant : point.open->participants()) {
    if (participant.row.state != State::unequal) continue;
    const auto accused = std::pair(bundle.question.mode, participant.name());
    if (core::has_few_runs(bundle.info))
      doubtful = doubtful || !unequal_.contains(accused);
    else
      unequal_.insert(accused);
  }
  return doubtful;
}

Result<bool> SweepRunner::open_with_all_runs(Point& point, int number) {
  std::vector<std::string> accused;
  for (const auto& participant : point.open->participants())
    if (participant.row.state == State::unequal) accused.push_back(participant.name());
  const auto named = words(plan::point_of(point.spec));
  events_.note(
      fmt::format("{}: unequal beside three runs of eager: {}; all runs decide", named, fmt::join(accused, ", ")));
  auto captured = capture_case(ready_, spec_of_point(point.spec, grid_, false, true), events_);
  if (captured)
    if (auto added = add_evaluation(*captured, ready_, store_); !added) captured = tl::unexpected(added.error());
  if (!captured) {
    events_.note(fmt::format("{}: {}", named, captured.error().what));
    return false;
  }
  STRATA_TRY(store_.drop_restarts(ready_.setting.run_id, key_of(captured->bundle.question), 0));
  auto again = std::make_unique<CapturedCase>(std::move(*captured));
  dropped_.emplace_back(std::exchange(point.captured, std::move(again)), std::move(point.open));
  point.stored = nullptr;
  point.begun_again = true;
  point.apart = number > 0;
  STRATA_TRY(begin_case(point));
  return true;
}

Result<void> SweepRunner::capture(Point& point) {
  if (point.captured) return {};
  if (point.cannot) return tl::unexpected(*point.cannot);
  const auto begun = elapsed();
  auto captured = capture_case(ready_, spec_of_point(point.spec, grid_, request_.full_proof), events_);
  if (!captured) {
    point.cannot = captured.error();
    return tl::unexpected(captured.error());
  }
  point.captured = std::make_unique<CapturedCase>(std::move(*captured));
  point.capture_s = elapsed() - begun;
  forecast_.learn(point.captured->bundle.question, point.captured->bundle.info);
  return add_evaluation(*point.captured, ready_, store_);
}

// Captures it, and begins its case unless the run that goes on has all its restarts.
Result<void> SweepRunner::open(Point& point) {
  STRATA_TRY(capture(point));
  const auto& s = ready_.setting;
  const auto key = key_of(point.captured->bundle.question);
  STRATA_TRY(stored_.begin());
  point.stored = stored_case(s.resumed, key);
  if (point.stored) {
    const auto restarts = STRATA_TRY(store_.restarts(s.run_id, key));
    point.before = static_cast<int>(restarts.size());
    if (point.before >= s.effort.restarts) {
      for (const auto& row : point.stored->rows) {
        measure::add_outcome(point.outcome, row, s.options.levels);
        learn_memory(point.captured->bundle, row);
      }
      return {};
    }
  }
  return begin_case(point);
}

Result<void> SweepRunner::begin_case(Point& point) {
  point.open = STRATA_TRY(measure::VisitedCase::open(ready_.setting, point.captured->bundle, extras_of(point),
                                                     ready_.levels, facts_, store_, progress_to(events_)));
  return {};
}

// In fresh processes its memory is seen: at corners, on two lines, and where too little was seen to foresee it.
measure::CaseExtras SweepRunner::extras_of(const Point& point) {
  auto extras = point.captured->extras();
  const auto& bundle = point.captured->bundle;
  extras.skipped = out_of_memory_.skipped(bundle.question);
  extras.warm = point.apart ? nullptr : &warm_;
  for (const auto& level : ready_.levels)
    if (const auto bytes = peaks_.expected(level.name(), bundle.question, plan::work_of(bundle.info).moving_bytes))
      extras.expected_bytes[level.name()] = *bytes;
  extras.alone = point.apart || grid_.is_corner(point.spec) || grid_.is_on_line(point.spec) ||
                 ready_.setting.options.tuned || extras.expected_bytes.empty();
  return extras;
}

void SweepRunner::learn_memory(const plan::Bundle& bundle, const store::Row& row) {
  if (const auto peak = row.memory ? row.memory->peak_private_bytes.value_or(0) : 0; peak > 0)
    peaks_.add(row.name(), bundle.question, plan::work_of(bundle.info).moving_bytes, static_cast<double>(peak));
}

// What ran out of memory in earlier runs, with no less memory and the same PyTorch.
Result<void> SweepRunner::remember_exhaustion() {
  if (request_.retry) return {};
  const auto& s = ready_.setting;
  const auto seen = STRATA_TRY(store_.out_of_memory(s.machine));
  const double limit = s.options.memory_limit_gib.value_or(0);
  for (const auto& element : seen)
    if (element.torch == s.environment.torch_version &&
        (element.limit_gib == 0 || (limit > 0 && element.limit_gib >= kSameLimit * limit)))
      out_of_memory_.add(element.level, element.question);
  return {};
}

Result<void> SweepRunner::note_missing(Point& point, const Error& error) {
  point.missing = true;
  if (!first_error_) first_error_ = error;
  STRATA_TRY(stored_.begin());
  const auto named = words(plan::point_of(point.spec));
  events_.note(fmt::format("{}: {}", named, error.what));
  return store_.add_warning(ready_.setting.run_id, analysis::warnings::missing_point(named, error.what));
}

}  // namespace strata::engine
