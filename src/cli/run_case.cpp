// SPDX-License-Identifier: Apache-2.0
#include "cli/run_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "analysis/store_metrics.hpp"
#include "cli/capturing.hpp"

namespace strata::cli {
using Json = nlohmann::json;
namespace {

Json in_float32(Json spec) {
  spec["maths"] = "fp32";
  return spec;
}

// The inputs that a score wants, for a case of mode infer.
Result<std::optional<measure::Evaluation>> evaluation_of(const Prepared& ready, const Json& spec,
                                                         const plan::Bundle& bundle, const store::Store& store) {
  if (!ready.score || spec.value("mode", "infer") != "infer") return std::optional<measure::Evaluation>();
  const auto& s = ready.setting;
  const auto folder = store.path().parent_path() / "logs" / s.run_id / fmt::format("eval-{}", bundle.key);
  const auto timeout = std::chrono::milliseconds(static_cast<std::int64_t>(s.options.timeout_s.value_or(600) * 1000));
  auto begun = measure::begin_evaluation(*ready.score, bundle, s.place, s.environment, folder, timeout);
  if (!begun) return tl::unexpected(begun.error());
  return std::optional<measure::Evaluation>(std::move(*begun));
}

// Of the run that goes on; nullptr: it is to be measured.
const store::Case* finished_case(const store::Run* resumed, const std::string& key) {
  if (!resumed) return nullptr;
  const auto found = std::find_if(resumed->cases.begin(), resumed->cases.end(),
                                  [&](const auto& one) { return one.key == key && one.finished; });
  return found == resumed->cases.end() ? nullptr : &*found;
}

}  // namespace

Result<measure::Outcome> run_case(const Prepared& ready, const Json& spec, const plan::Outgrown* outgrown,
                                  measure::MachineFacts& facts, store::Store& store, StoredRun& stored,
                                  ProgressLine& line) {
  const auto& s = ready.setting;
  const auto capture = [&](const Json& one, const plan::Bundle* shared) {
    return plan::get_bundle(one, s.place, s.environment, wishes_of(s.options, line, shared));
  };
  std::optional<plan::Bundle> strict;
  if (spec.value("maths", "fp32") != "fp32") {
    auto captured = capture(in_float32(spec), nullptr);
    if (!captured) return tl::unexpected(captured.error());
    strict = std::move(*captured);
  }
  const auto bundle = capture(spec, strict ? &*strict : nullptr);
  if (!bundle) return tl::unexpected(bundle.error());
  std::optional<plan::Bundle> deep;
  if (s.options.deep && spec.value("mode", "infer") == "infer") {
    auto tapped = in_float32(spec);
    tapped.erase("dynamic");
    tapped["deep"] = true;
    auto captured = capture(tapped, nullptr);
    if (!captured) return tl::unexpected(captured.error());
    deep = std::move(*captured);
  }
  if (const auto* before = finished_case(s.resumed, key_of(bundle->question))) {
    if (auto begun = stored.begin(); !begun) return tl::unexpected(begun.error());
    line.callbacks().note(fmt::format("{}: measured already", before->id));
    measure::Outcome outcome;
    for (const auto& row : before->rows) measure::add_outcome(outcome, row, s.options.levels);
    return outcome;
  }
  auto evaluation = evaluation_of(ready, spec, *bundle, store);
  if (!evaluation) return tl::unexpected(evaluation.error());
  const measure::Besides besides{deep ? &*deep : nullptr, strict ? &*strict : nullptr,
                                 *evaluation ? &**evaluation : nullptr,
                                 outgrown ? outgrown->skipped(bundle->question) : measure::Skipped()};
  if (auto begun = stored.begin(); !begun) return tl::unexpected(begun.error());
  auto outcome = measure::compare_case(s, *bundle, besides, ready.levels, facts, store, line.callbacks());
  if (!outcome) stored.cut_short();
  if (outcome)
    if (auto written = analysis::store_metrics(store, s.run_id, key_of(bundle->question)); !written)
      return tl::unexpected(written.error());
  return outcome;
}

}  // namespace strata::cli
