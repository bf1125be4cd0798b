// SPDX-License-Identifier: Apache-2.0
#include "engine/sweep_forecast.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

#include "core/bundle_info.hpp"
#include "measure/calibrate.hpp"
#include "plan/training_time.hpp"
#include "probe/limits.hpp"
#include "report/format.hpp"
#include "store/store.hpp"

namespace strata::engine {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

constexpr int kLightRing = 2;                        // inputs of a light capture
constexpr int kRunsLookedAt = 50, kPeaksRead = 400;  // the newest
constexpr std::size_t kVisitsRead = 2000, kCapturesRead = 16;
constexpr std::chrono::milliseconds kRateTime{300};
constexpr double kRateElsewhere = 5e12;  // FLOP/s, of a GPU of which nothing is known yet
// A first guess of a process's memory: its libraries, PyTorch's or others; weights with, in training, gradients and
// momentum; of what all layers put out the part that lives at once.
constexpr double kWithTorch = 300e6, kWithoutTorch = 20e6;
constexpr double kWeightsTraining = 4, kLivingInference = 0.25, kLivingTraining = 1.2;

double guessed_bytes(const plan::Work& work, bool trains, bool torch) {
  return (torch ? kWithTorch : kWithoutTorch) + work.weight_bytes * (trains ? kWeightsTraining : 1) +
         work.moving_bytes * (trains ? kLivingTraining : kLivingInference);
}

}  // namespace

double visit_seconds(const SweepRequest& request, const plan::Effort& effort) {
  return request.point_time_s.value_or(effort.budget_s) / effort.restarts;
}

core::CaseSpec spec_of_point(const core::CaseSpec& spec, const plan::Grid& grid, bool full_proof, bool all_runs) {
  auto own = spec;
  if (grid.is_corner(spec) || full_proof) return own;
  own.light = true;
  own.ring = kLightRing;
  own.generic_sets = 1;
  own.all_runs = all_runs;
  return own;
}

std::size_t within_two(const std::vector<Prediction>& all) {
  return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [](const Prediction& prediction) {
    return prediction.predicted <= 2 * prediction.actual && prediction.actual <= 2 * prediction.predicted;
  }));
}

store::VisitFacts facts_of(const plan::MeasuredVisit& seen) {
  return {.kind = std::string(plan::name_of(seen.visit.kind)),
          .levels = seen.visit.levels,
          .fresh = seen.visit.fresh,
          .trains = seen.visit.trains,
          .count = static_cast<int>(seen.visit.count),
          .flops = seen.visit.flops,
          .capture_s = seen.capture_s,
          .rest_s = seen.rest_s};
}

plan::MeasuredVisit seen_of(const store::VisitFacts& stored) {
  plan::MeasuredVisit seen;
  for (const auto kind : {plan::VisitKind::whole, plan::VisitKind::light, plan::VisitKind::later})
    if (stored.kind == plan::name_of(kind)) seen.visit.kind = kind;
  seen.visit.fresh = stored.fresh;
  seen.visit.levels = stored.levels;
  seen.visit.count = static_cast<std::size_t>(std::clamp(stored.count, 1, 1000));
  seen.visit.trains = stored.trains;
  seen.visit.flops = stored.flops;
  seen.capture_s = stored.capture_s;
  seen.rest_s = stored.rest_s;
  return seen;
}

SweepForecast::SweepForecast(const SweepRequest& request, const Prepared& ready, const plan::Grid& grid,
                             const fs::path& store)
    : request_(request), ready_(ready), grid_(grid) {
  std::vector<core::CaseSpec> captured_specs;
  for (const auto& spec : ready.specs) captured_specs.push_back(spec_of_point(spec, grid, request.full_proof));
  const auto captured = plan::find_captured(captured_specs, ready.setting.place, ready.setting.environment);
  int threads = 1;
  for (std::size_t i = 0; i < ready.specs.size(); ++i) {
    const auto bundle = provisional_bundle(ready.specs[i]);
    known_[plan::point_of(ready.specs[i])] = {.at = plan::sweep_position(ready.specs[i]),
                                              .question = bundle.question,
                                              .levels = participants_of(ready, bundle).names,
                                              .captured = !captured[i].empty() && !ready.setting.options.fresh};
    threads = std::max(threads, bundle.question.threads);
    model_ = bundle.question.model;
  }
  const bool on_cpu = ready.setting.options.device == "cpu";
  if (on_cpu) gflops_ = probe::measure_limits(threads, kRateTime).gflops;
  visits_ = plan::VisitModel(gflops_ > 0 ? plan::kShareOfPeak * gflops_ * 1e9 : kRateElsewhere);
  learn_from_cache(captured);
  learn_from_store(store);
}

// The points' own captures; where there is none, any of the network.
void SweepForecast::learn_from_cache(const std::vector<fs::path>& captured) {
  std::set<fs::path> folders;
  for (const auto& folder : captured)
    if (!folder.empty() && folders.size() < kCapturesRead) folders.insert(folder);
  std::error_code ec;
  if (folders.empty())
    for (const auto& entry : fs::directory_iterator(ready_.setting.place.cache / "bundles", ec)) {
      if (folders.size() == kCapturesRead) break;
      const auto question = core::case_in(entry.path());
      if (question && question->model == model_) folders.insert(entry.path());
    }
  for (const auto& folder : folders) {
    const auto question = core::case_in(folder);
    const auto info = plan::read_captured(folder);
    if (question && info) learn(*question, *info);
  }
}

// A store that is damaged says so when the sweep opens it.
void SweepForecast::learn_from_store(const fs::path& path) {
  std::error_code ec;
  if (!fs::exists(path, ec)) return;
  const auto store = store::Store::open_existing(path);
  if (!store) return;
  const auto machine = measure::machine_key(ready_.setting.machine);
  const auto runs = store->list_runs(kRunsLookedAt);
  for (const auto& run : runs.value_or(std::vector<store::Run>())) {
    if (run.settings.visited.model != model_ || measure::machine_key(run.machine) != machine) continue;
    for (const auto& visit : run.settings.visited.visits)
      if (visits_.seen() < kVisitsRead) visits_.add(seen_of(visit));
  }
  before_ = visits_.seen();
  const auto peaks = store->peak_memories(model_, ready_.setting.machine, kPeaksRead);
  for (const auto& peak : peaks.value_or(std::vector<store::PeakMemory>()))
    peaks_.add(peak.level, peak.question, plan::work_of(peak.bundle).moving_bytes, peak.bytes);
}

const core::CaseSpec* SweepForecast::smallest() const {
  const core::CaseSpec* least = nullptr;
  const auto pixels = [this](const core::CaseSpec& spec) {
    const auto& at = known(spec).at;
    const auto area = at.size ? static_cast<double>(at.size->first) * static_cast<double>(at.size->second) : 1.0;
    return static_cast<double>(at.batch.value_or(1)) * area;
  };
  for (const auto& spec : ready_.specs)
    if (grid_.is_corner(spec) && (least == nullptr || pixels(spec) < pixels(*least))) least = &spec;
  return least;
}

void SweepForecast::learn(const core::Case& question, const Json& info) {
  work_.add(plan::sweep_position(question), plan::work_of(info));
}

const SweepForecast::Known& SweepForecast::known(const core::CaseSpec& spec) const {
  const auto point = plan::point_of(spec);
  const auto it = known_.find(point);
  if (it != known_.end()) return it->second;
  const auto bundle = provisional_bundle(spec);  // a batch that a search has come to
  return known_[point] = {.at = plan::sweep_position(spec),
                          .question = bundle.question,
                          .levels = participants_of(ready_, bundle).names};
}

plan::Visit SweepForecast::visit_of(const core::CaseSpec& spec, bool first) const {
  const auto& point = known(spec);
  const auto work = work_.expected(point.at);
  plan::Visit visit;
  visit.kind = !first                                         ? plan::VisitKind::later
               : grid_.is_corner(spec) || request_.full_proof ? plan::VisitKind::whole
                                                              : plan::VisitKind::light;
  visit.fresh = first && !point.captured;
  visit.levels = fmt::format("{}/{}/{}/t{}", fmt::join(point.levels, ","), name_of(point.question.mode),
                             name_of(point.question.precision), point.question.threads);
  visit.count = std::max<std::size_t>(1, point.levels.size());
  visit.trains = point.at.mode == core::Mode::train;
  visit.flops = work ? work->flops : 0;
  return visit;
}

std::optional<double> SweepForecast::bytes_of(const core::CaseSpec& spec) const {
  const auto& point = known(spec);
  const auto work = work_.expected(point.at);
  if (!work) return std::nullopt;
  double sum = 0;
  for (const auto& level : ready_.levels) {
    if (std::find(point.levels.begin(), point.levels.end(), level.name()) == point.levels.end()) continue;
    sum += peaks_.expected(level.name(), point.question, work->moving_bytes)
               .value_or(guessed_bytes(*work, point.at.mode == core::Mode::train, level.environment));
  }
  return sum;
}

std::vector<PointForecast> SweepForecast::points(const std::vector<core::CaseSpec>& specs) const {
  const auto& effort = ready_.setting.effort;
  const int walks = std::max(1, effort.restarts);
  std::vector<PointForecast> all;
  double beside = 0;
  for (const auto& spec : specs) {
    all.push_back({.seconds = beside_s(spec, true) + (walks - 1) * beside_s(spec, false), .bytes = bytes_of(spec)});
    beside += all.back().seconds;
  }
  double measured = visit_seconds(request_, effort) * walks;
  if (const auto& budget = ready_.setting.options.budget_s; budget && !request_.point_time_s && !specs.empty())
    measured = std::max(kLeastMeasured_s * walks, (*budget - beside) / static_cast<double>(specs.size()));
  for (auto& element : all) element.seconds += measured;
  return all;
}

std::string SweepForecast::source() const {
  if (before_ > 0) return fmt::format("by {} visits of earlier sweeps of {} on this machine", before_, model_);
  if (gflops_ > 0 && knows_work())
    return fmt::format(
        "estimated from its operations at {:.0f}% of this machine's {:.0f} GFLOP/s: no sweep of {} is "
        "stored here",
        100 * plan::kShareOfPeak, gflops_, model_);
  return fmt::format("assumed: no sweep of {} is stored here", model_);
}

}  // namespace strata::engine
