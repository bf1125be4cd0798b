// SPDX-License-Identifier: Apache-2.0
#include "engine/training_forecast.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "analysis/limit.hpp"
#include "core/bundle_info.hpp"
#include "data/catalogue.hpp"
#include "probe/limits.hpp"
#include "report/format.hpp"

namespace strata::engine {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

constexpr std::chrono::milliseconds kPeakTime{300};
constexpr double kWeightsKept = 6;  // times a network's weights: last, best, and two states with their momentum

// What is known of the case: its question, data named; how large images are.
struct CaseFacts {
  core::Case question;
  std::optional<std::pair<std::int64_t, std::int64_t>> size{};  // height, width
  std::function<Result<double>()> forward_flops{};  // of one image; asked only where the store does not know a step
};

// Newest last, so that it is what stays.
std::map<std::string, store::StepTime> stored_steps(const fs::path& path, const Prepared& ready,
                                                    const CaseFacts& about) {
  std::map<std::string, store::StepTime> newest;
  if (!there_is(path)) return newest;
  const auto store = store::Store::open_existing(path);
  if (!store) return newest;  // a training says what is wrong with it
  std::optional<std::int64_t> height, width;
  if (about.size) std::tie(height, width) = *about.size;
  const auto times = store->step_times(about.question, height, width, ready.setting.machine);
  for (const auto& step_time : times.value_or(std::vector<store::StepTime>())) newest[step_time.level] = step_time;
  return newest;
}

// For levels that were never measured: as the slowest that was; else by operations.
LevelForecast estimate(const std::map<std::string, store::StepTime>& steps, const CaseFacts& about) {
  if (!steps.empty()) {
    const auto slowest = std::max_element(steps.begin(), steps.end(),
                                          [](const auto& a, const auto& b) { return a.second.ms < b.second.ms; });
    return {"", slowest->second.ms * 1e-3,
            fmt::format("assumed: as {}, the slowest that was measured", slowest->first)};
  }
  if (about.question.device != core::Device::cpu)
    return {"", std::nullopt, "not known: no training of it on this GPU is stored"};
  const auto flops = about.forward_flops();
  if (!flops) return {"", std::nullopt, "not known: " + flops.error().what};
  const auto limits = probe::measure_limits(about.question.threads, kPeakTime);
  if (limits.gflops <= 0) return {"", std::nullopt, "not known: this machine's rate cannot be measured"};
  return {"",
          plan::kBesidesS + plan::step_flops(*flops, about.question.batch) / (plan::kShareOfPeak * limits.gflops * 1e9),
          fmt::format("estimated: {}FLOP a step at {:.0f}% of this machine's {:.0f} GFLOP/s",
                      report::scaled(plan::step_flops(*flops, about.question.batch)), 100 * plan::kShareOfPeak,
                      limits.gflops)};
}

struct Counts {
  std::int64_t train = 0, test = 0;
  data::Shape shape;
  std::string note;
};

// From the cache, if the set was ever read here; else as published.
Counts counts_of(const TrainingPlan& plan, const fs::path& cache) {
  auto options = open_options(plan, cache);
  options.make = false;
  if (const auto opened = data::open_dataset(plan.dataset, options))
    return {.train = static_cast<std::int64_t>(opened->set.train.count),
            .test = static_cast<std::int64_t>(opened->set.test.count),
            .shape = opened->set.shape,
            .note = ""};
  const auto* entry = data::find_entry(plan.dataset);
  if (entry == nullptr || entry->count[0] == 0)
    return {
        .train = 0,
        .test = 0,
        .note = fmt::format("{}: its images were not counted yet, since its files were not read here", plan.dataset)};
  return {.train = static_cast<std::int64_t>(entry->count[0]),
          .test = static_cast<std::int64_t>(entry->count[1]),
          .shape = entry->shape,
          .note = fmt::format("{}: as many images as published; its files were not read here", plan.dataset)};
}

// Of one image.
Result<double> forward_flops(const plan::Bundle& bundle) {
  const auto flops = analysis::flops_of(bundle.info);
  if (!flops) return fail("what the network computes is not counted");
  return *flops / static_cast<double>(std::max<std::int64_t>(1, bundle.question.batch));
}

// The same by a capture for inference at batch 1: quick where that of a step is not.
Result<double> captured_flops(const Prepared& ready, const data::Shape& shape, EventSink& events) {
  const auto& s = ready.setting;
  auto single = ready.specs.front();
  single.mode = core::Mode::infer;
  single.batch = 1;
  single.optimiser.reset();
  single.loss.clear();
  const auto bundle = STRATA_TRY(at_size_of(shape, s, single, [&](const core::CaseSpec& spec) {
    return plan::get_bundle(spec, s.place, s.environment, capture_options(s.options, events));
  }));
  return forward_flops(bundle);
}

// Of a captured network; 0: none.
double weights_bytes(const fs::path& bundle) {
  double most = 0;
  std::error_code ec;
  for (const auto& file : fs::directory_iterator(bundle / "weights", ec)) {
    std::error_code gone;
    const auto bytes = fs::file_size(file.path(), gone);
    if (!gone) most = std::max(most, static_cast<double>(bytes));
  }
  return most;
}

// The weights of any captured case of this network.
double weights_of_model(const fs::path& cache, const std::string& model) {
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(cache / "bundles", ec)) {
    const auto question = core::case_in(entry.path());
    if (question && question->model == model) return weights_bytes(entry.path());
  }
  return 0;
}

TrainingForecast forecast(const TrainingPlan& plan, const Prepared& ready, const fs::path& path,
                          const plan::TrainingWork& work, const CaseFacts& about, const Participants& who) {
  TrainingForecast out{.work = work, .without = who.without, .scaled = plan.scaled};
  const auto steps = stored_steps(path, ready, about);
  std::optional<LevelForecast> assumed;
  out.seconds = plan::kOnceS;
  for (const auto& name : who.names) {
    LevelForecast level{.level = name};
    if (const auto known = steps.find(name); known != steps.end()) {
      level.step_s = known->second.ms * 1e-3;
      level.source = "measured in run " + known->second.run_id;
    } else {
      if (!assumed) assumed = estimate(steps, about);
      level = *assumed;
      level.level = name;
    }
    if (level.step_s && work.steps() > 0) level.seconds = plan::seconds_of_level(work, *level.step_s);
    out.known = out.known && level.step_s && work.steps() > 0;
    out.seconds += level.seconds;
    out.levels.push_back(std::move(level));
  }
  return out;
}

// On disk; 0: not known, since the network's weights are not. `image`: of each that is not there yet.
double kept_bytes(const TrainingForecast& f, double weights, double image = 0) {
  if (weights <= 0) return 0;
  return kWeightsKept * weights * f.work.repeats * static_cast<double>(f.levels.size()) +
         image * static_cast<double>(f.work.train + f.work.test);
}

}  // namespace

std::string TrainingForecast::source() const {
  std::set<std::string> sources;
  for (const auto& level : levels) sources.insert(level.source);
  return fmt::format("{}", fmt::join(sources, "; "));
}

TrainingForecast forecast_training(const TrainingPlan& plan, const Prepared& ready, const fs::path& store,
                                   const plan::TrainingWork& work, const plan::Bundle& bundle, const std::string& set) {
  CaseFacts about{.question = bundle.question};
  about.question.data = data_name(plan, set);
  if (const auto size = bundle.question.image_size()) about.size = *size;
  about.forward_flops = [&bundle] { return forward_flops(bundle); };
  auto out = forecast(plan, ready, store, work, about, participants_of(ready, bundle));
  out.bytes = kept_bytes(out, weights_bytes(bundle.folder));
  return out;
}

TrainingForecast forecast_training(TrainingPlan plan, const Prepared& ready, const fs::path& store, EventSink& events) {
  const auto& cache = ready.setting.place.cache;
  const auto counts = counts_of(plan, cache);
  const auto work = work_of(plan, plan.repeats, counts.train, counts.test);
  const auto bundle = provisional_bundle(ready.specs.front());
  CaseFacts about{.question = bundle.question};
  about.question.data = data_name(plan, data::set_name(plan.dataset));
  about.size = ready.specs.front().size;
  about.forward_flops = [&] { return captured_flops(ready, counts.shape, events); };
  auto out = forecast(plan, ready, store, work, about, participants_of(ready, bundle));
  out.note = counts.note;
  // the forecast may have captured it
  out.bytes =
      kept_bytes(out, weights_of_model(cache, bundle.question.model), static_cast<double>(counts.shape.bytes()));
  return out;
}

Result<void> check_network(const TrainingPlan& plan, const Prepared& ready, EventSink& events) {
  const auto& s = ready.setting;
  const auto& spec = ready.specs.front();
  const auto inputs =
      STRATA_TRY(at_size_of(counts_of(plan, s.place.cache).shape, s, spec, [&](const core::CaseSpec& sized) {
        return plan::inputs_of(sized, s.place, s.environment, capture_options(s.options, events));
      }));
  STRATA_TRY(image_shape(inputs, provisional_bundle(spec).question.model));
  return {};
}

}  // namespace strata::engine
