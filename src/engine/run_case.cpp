// SPDX-License-Identifier: Apache-2.0
#include "engine/run_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>

#include "analysis/metrics.hpp"
#include "common/interrupt.hpp"

namespace strata::engine {
namespace {

core::CaseSpec in_float32(core::CaseSpec spec) {
  spec.precision = core::Precision::fp32;
  return spec;
}

}  // namespace

measure::CaseExtras CapturedCase::extras() const {
  const auto address = [](const auto& held) { return held ? &*held : nullptr; };
  return {.deep = address(deep), .strict = address(strict), .evaluation = address(evaluation)};
}

Result<CapturedCase> capture_case(const Prepared& ready, const core::CaseSpec& spec, EventSink& events) {
  const auto& s = ready.setting;
  const auto capture = [&](const core::CaseSpec& value, const plan::Bundle* shared) {
    return plan::get_bundle(value, s.place, s.environment, capture_options(s.options, events, shared));
  };
  CapturedCase captured;
  if (spec.precision != core::Precision::fp32) {
    captured.strict = STRATA_TRY(capture(in_float32(spec), nullptr));
  }
  captured.bundle = STRATA_TRY(capture(spec, captured.strict ? &*captured.strict : nullptr));
  if (s.options.deep && spec.mode == core::Mode::infer) {
    auto tapped = in_float32(spec);
    tapped.open_batch.reset();
    tapped.light = tapped.all_runs = false;
    tapped.generic_sets = s.options.weight_sets;
    tapped.deep = true;
    captured.deep = STRATA_TRY(capture(tapped, nullptr));
  }
  return captured;
}

Result<void> check_cases(const Prepared& ready, bool all, EventSink& events) {
  const auto& s = ready.setting;
  std::set<std::pair<core::Mode, std::optional<std::pair<std::int64_t, std::int64_t>>>> tried;
  std::optional<Error> first;
  for (const auto& spec : ready.specs) {
    if (interrupted() || !tried.emplace(spec.mode, spec.size).second) continue;
    const auto inputs = plan::inputs_of(spec, s.place, s.environment, capture_options(s.options, events));
    if (inputs && all) return {};
    if (!inputs && !first) first = inputs.error();
  }
  if (first) return tl::unexpected(*first);
  return {};
}

Result<void> add_evaluation(CapturedCase& captured, const Prepared& ready, const store::Store& store) {
  if (!ready.score || captured.bundle.question.mode != core::Mode::infer) return {};
  const auto& s = ready.setting;
  const auto folder = store.path().parent_path() / "logs" / s.run_id / fmt::format("eval-{}", captured.bundle.key);
  const auto timeout = std::chrono::milliseconds(static_cast<std::int64_t>(s.options.timeout_s.value_or(600) * 1000));
  captured.evaluation =
      STRATA_TRY(measure::begin_evaluation(*ready.score, captured.bundle, s.place, s.environment, folder, timeout));
  return {};
}

const store::Case* stored_case(const store::Run* resumed, const std::string& key) {
  if (!resumed) return nullptr;
  const auto it = std::find_if(resumed->cases.begin(), resumed->cases.end(),
                               [&](const auto& run_case) { return run_case.key == key; });
  return it == resumed->cases.end() ? nullptr : &*it;
}

Result<measure::Outcome> run_case(const Prepared& ready, const core::CaseSpec& spec, measure::MachineFacts& facts,
                                  store::Store& store, StoredRun& stored, EventSink& events) {
  const auto& s = ready.setting;
  auto captured = STRATA_TRY(capture_case(ready, spec, events));
  const auto key = key_of(captured.bundle.question);
  if (const auto* before = stored_case(s.resumed, key); before && before->finished) {
    STRATA_TRY(stored.begin());
    events.note(fmt::format("{}: measured already", before->id));
    measure::Outcome outcome;
    for (const auto& row : before->rows) measure::add_outcome(outcome, row, s.options.levels);
    return outcome;
  }
  STRATA_TRY(add_evaluation(captured, ready, store));
  STRATA_TRY(stored.begin());
  auto progress = progress_to(events);
  progress.restarted = [&](int done, int planned) { events.restart_ended({s.run_id, key, done, planned}); };
  auto outcome = measure::compare_case(s, captured.bundle, captured.extras(), ready.levels, facts, store, progress);
  if (!outcome) stored.cut_short();
  if (outcome) STRATA_TRY(analysis::store_metrics(store, s.run_id, key));
  return outcome;
}

Result<measure::Outcome> run_cases(const Prepared& ready, measure::MachineFacts& facts, store::Store& store,
                                   StoredRun& stored, EventSink& events) {
  measure::Outcome all;
  std::optional<Error> first;
  for (const auto& spec : ready.specs) {
    if (interrupted()) break;
    const auto outcome = run_case(ready, spec, facts, store, stored, events);
    if (!outcome) {
      if (interrupted()) break;
      if (&spec != &ready.specs.back()) events.note(outcome.error().what);
      if (!first) first = outcome.error();
      continue;
    }
    all.failed = all.failed || outcome->failed;
    all.missing = all.missing || outcome->missing;
  }
  if (first) return tl::unexpected(*first);
  return all;
}

}  // namespace strata::engine
