// SPDX-License-Identifier: Apache-2.0
#include "analysis/metrics.hpp"

#include <fmt/format.h>

#include <cmath>

#include "analysis/client_point.hpp"
#include "analysis/judge_stored.hpp"
#include "analysis/meters.hpp"
#include "analysis/open_batch.hpp"
#include "analysis/row_numbers.hpp"
#include "common/lookup.hpp"

namespace strata::analysis {
namespace {

using core::Metric;
using nlohmann::json;

const char* const kNotReliable = "not reliable: other programs had the cores";

class RowMetrics {
 public:
  RowMetrics(const CaseStatistics& statistics, const store::Case& run_case, const store::Row& row)
      : statistics_(statistics), case_(run_case), row_(row), batch_(static_cast<double>(run_case.question.batch)) {}

  std::vector<store::Metric> all() {
    add_proof();
    if (row_.state != State::measured) return std::move(all_);
    if (const auto i = statistics_.index_of(row_.name())) {
      add_times(*i);
      add_ratios(*i);
    }
    add_memory();
    add_starts();
    add_sizes();
    add_passes();
    add_clients();
    add_open_batch();
    return std::move(all_);
  }

 private:
  // What is not finite is unknown, and no metric or no end of an interval.
  void add(Metric which, const stats::Interval& value, std::string method, std::string setting = {}) {
    if (!std::isfinite(value.value)) return;
    const auto end = [](double x) { return std::isfinite(x) ? std::optional(x) : std::nullopt; };
    all_.push_back({.row_id = row_.row_id,
                    .which = which,
                    .setting = std::move(setting),
                    .value = value.value,
                    .low = end(value.low),
                    .high = end(value.high),
                    .method = std::move(method)});
  }
  void add(Metric which, double value, std::string method, std::string setting = {}) {
    add(which, stats::Interval{value, stats::nan, stats::nan}, std::move(method), std::move(setting));
  }
  void add_at(Metric which, const json& object, const char* path, const char* method, std::string setting = {}) {
    if (const auto value = lookup::number(object, path)) add(which, *value, method, std::move(setting));
  }
  void add_estimate(Metric which, const json& estimate, std::string method) {
    const auto part = [&](const char* name) { return lookup::number(estimate, name).value_or(stats::nan); };
    add(which, stats::Interval{part("value"), part("low"), part("high")}, std::move(method));
  }

  bool is_train() const { return case_.question.mode == core::Mode::train; }

  void add_proof() {
    add_at(Metric::proof_ratio, row_.proof, "worst_ratio", "observed");
    if (row_.state != State::measured) return;
    const auto& accuracy = row_.info.accuracy;
    if (accuracy && accuracy->error) add(Metric::error, *accuracy->error, "observed");
    if (accuracy) add(Metric::answers_differ, static_cast<double>(accuracy->differ), "observed");
  }

  void add_times(std::size_t i) {
    const auto numbers = row_numbers(statistics_, i, batch_);
    const char* how = numbers.time.is_median ? "median of the samples" : "model of all blocks";
    const auto wall = stats::summarise(numbers.wall_ms), latency = stats::summarise(numbers.latency_ms);
    add(Metric::iteration_time, numbers.time_ms, how);
    add(Metric::iteration_time_median, wall.median, "samples");
    add(Metric::iteration_time_p90, wall.p90, "samples");
    add(Metric::iteration_time_p99, wall.p99, "samples");
    add(Metric::iteration_time_min, wall.min, "samples");
    add(Metric::iterations, static_cast<double>(wall.count), "count");
    add(Metric::latency, numbers.latency.milliseconds, how);
    add(Metric::latency_median, latency.median, "samples");
    add(Metric::latency_p90, latency.p90, "samples");
    add(Metric::latency_p99, latency.p99, "samples");
    add(Metric::throughput, numbers.throughput_per_s, how);
    if (is_train()) add(Metric::steps_per_s, 1000.0 / numbers.time.milliseconds, how);
    if (numbers.cpu_ms) add(Metric::cpu_time, *numbers.cpu_ms, "mean of the blocks");
    for (const auto& [which, meter] : meters_of(row_, case_.question.threads))
      if (meter.value)
        add(which, *meter.value, which == Metric::cpu_utilisation ? "mean of the blocks" : "mean of the turns");
    add(Metric::disturbed_share, numbers.disturbed_share, "count");
    add(Metric::restart_spread, numbers.restart_spread, "restarts");
  }

  void add_ratios(std::size_t i) {
    add_ratio(Metric::speedup, statistics_.ratio(statistics_.reference(), i));
    add_break_even(Metric::break_even, statistics_.break_even(statistics_.reference(), i));
    add_break_even(Metric::break_even_once, statistics_.break_even_once(statistics_.reference(), i));
    if (statistics_.is_tuned(i)) add_ratio(Metric::speedup_tuned, statistics_.ratio(statistics_.tuned_reference(), i));
  }
  void add_ratio(Metric which, const json& ratio) {
    const auto rests_on = lookup::text(ratio, "rests_on");
    add_estimate(which, ratio,
                 !statistics_.reliable()  ? kNotReliable
                 : rests_on.empty()       ? std::string("the reference")
                 : statistics_.together() ? "interleaved, interval of " + rests_on
                                          : "one after the other, interval of " + rests_on);
  }
  void add_break_even(Metric which, const json& found) {
    if (lookup::flag(found, "never") || lookup::flag(found, "inconclusive")) return;
    const auto part = [&](const char* name) { return lookup::number(found, name).value_or(stats::nan); };
    add(which, stats::Interval{part("iterations"), part("low"), part("high")}, "starts and times");
  }

  void add_memory() {
    for (const auto& [which, path] : {std::pair{Metric::idle_memory, "idle_private_bytes"},
                                      {Metric::steady_memory, "steady_private_bytes"},
                                      {Metric::peak_memory, "peak_private_bytes"},
                                      {Metric::memory_above_idle, "above_idle_bytes"},
                                      {Metric::steady_share_memory, "steady_pss_bytes"},
                                      {Metric::shared_file_memory, "shared_file_bytes"}})
      add_at(which, row_.memory, path, "observed");
    add_at(Metric::device_peak_memory, row_.memory, "device_peak_bytes", "reported");
  }

  void add_starts() {
    if (row_.start_up.empty()) return;
    add(Metric::warm_start, statistics_.start_range(row_), "median of the starts");
    for (const auto& [which, part] : {std::pair{Metric::start_process, "process_ms"},
                                      {Metric::start_library, "library_ms"},
                                      {Metric::start_load, "load_ms"},
                                      {Metric::start_build, "build_ms"},
                                      {Metric::start_weights, "weights_ms"},
                                      {Metric::start_first_iteration, "first_iteration_ms"}})
      add(which, start_part(row_, part), "median of the starts");
    if (const auto ms = cold_start(row_, &store::ColdStart::total_ms)) add(Metric::cold_start, *ms, "one start");
    if (const auto ms = cold_start(row_, &store::ColdStart::prepare_ms)) add(Metric::prepare_time, *ms, "one start");
  }

  void add_sizes() {
    const auto bytes = [&](Metric which, const std::optional<std::int64_t>& size, const char* method) {
      if (size) add(which, static_cast<double>(*size), method);
    };
    bytes(Metric::disk, row_.disk_bytes, "observed");
    bytes(Metric::artefact_size, row_.artefact_bytes, "reported");
    bytes(Metric::shipped_size, shipped_bytes(row_), "observed");
    if (const auto& libraries = row_.info.libraries) bytes(Metric::library_size, libraries->bytes, "observed");
    if (const auto& lines = row_.info.lines) add(Metric::code_lines, lines->total, "count");
  }

  void add_passes() {
    if (const auto& phases = row_.info.phases; is_train() && phases)
      for (const auto& [phase, ms] : phases->ms)
        if (ms) add(Metric::phase_time, *ms, "median of the pass", phase);
    if (lookup::text(row_.info.eval, "state") == "scored")
      add_at(Metric::score, row_.info.eval, "score", "the user's score()");
  }

  void add_clients() {
    for (const auto& stored : lookup::list(row_.info.clients, "points")) {
      const auto point = client_point(stored, statistics_.sigma());
      if (point.state != "measured") continue;
      const auto setting = fmt::format("{} {}", point.clients, point.as);
      const auto how = fmt::format("{} repetitions", point.repetitions);
      const auto& rate = point.requests_per_s;
      add(Metric::requests_per_s, rate, how, setting);
      add(Metric::inputs_per_s, {rate.value * batch_, rate.low * batch_, rate.high * batch_}, how, setting);
      add(Metric::request_p50, point.p50_ms, how, setting);
      add(Metric::request_p90, point.p90_ms, how, setting);
      add(Metric::request_p99, point.p99_ms, how, setting);
      add(Metric::request_cpu_time, point.cpu_ms, how, setting);
      add(Metric::serve_memory, point.private_bytes, how, setting);
    }
  }

  void add_open_batch() {
    const auto open =
        dynamic_view(row_, statistics_.room(), statistics_.sigma(), statistics_.minimum(), statistics_.reliable());
    if (lookup::text(open, "state") != "measured") return;
    for (const auto& size : lookup::list(open, "sizes")) {
      const auto setting = "batch " + lookup::text(size, "batch");
      add_at(Metric::open_batch_time, size, "settled_ms", "median of both visits", setting);
      add_at(Metric::open_batch_first, size, "first_ms", "one call", setting);
    }
    add_at(Metric::open_batch_recompiled, open, "recompiled", "count");
    add_at(Metric::open_batch_recompile_time, open, "recompile_ms", "first calls");
    add_estimate(Metric::open_batch_speedup, lookup::at(open, "against_fixed.ratio"),
                 statistics_.reliable() ? "interleaved" : kNotReliable);
  }

  const CaseStatistics& statistics_;
  const store::Case& case_;
  const store::Row& row_;
  double batch_;
  std::vector<store::Metric> all_;
};

}  // namespace

std::vector<store::Metric> metrics_of(const store::Run& run, const store::Case& run_case) {
  const CaseStatistics statistics(run, run_case);
  std::vector<store::Metric> all;
  for (const auto& row : run_case.rows)
    for (auto& metric : RowMetrics(statistics, run_case, row).all()) all.push_back(std::move(metric));
  return all;
}

Result<void> store_metrics(store::Store& store, const std::string& run_id, const std::string& case_key) {
  auto run = STRATA_TRY(store.load_case(run_id, case_key));
  judge_stored(run);
  for (const auto& run_case : run.cases) STRATA_TRY(store.set_metrics(run_id, run_case.key, metrics_of(run, run_case)));
  return {};
}

Result<void> store_metrics(store::Store& store, const std::string& run_id) {
  const auto cases = STRATA_TRY(store.run_cases(run_id));
  for (const auto& run_case : cases) STRATA_TRY(store_metrics(store, run_id, run_case.key));
  return {};
}

}  // namespace strata::analysis
