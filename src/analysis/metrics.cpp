// SPDX-License-Identifier: Apache-2.0
#include "analysis/metrics.hpp"

#include <fmt/format.h>

#include <cmath>

#include "analysis/client_point.hpp"
#include "analysis/judge_stored.hpp"
#include "analysis/meters.hpp"
#include "analysis/open_batch.hpp"
#include "analysis/row_numbers.hpp"

namespace strata::analysis {
namespace {

using core::Metric;

const char* const kNotReliableMethod = "not reliable: other programs had the cores";

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
  void add_known(Metric which, OptionalNumber value, std::string method, std::string setting = {}) {
    if (value) add(which, *value, std::move(method), std::move(setting));
  }
  void add_estimate(Metric which, const Estimate& estimate, std::string method, std::string setting = {}) {
    const auto known = [](OptionalNumber number) { return number.value_or(stats::nan); };
    add(which, stats::Interval{known(estimate.value), known(estimate.low), known(estimate.high)}, std::move(method),
        std::move(setting));
  }

  bool is_train() const { return case_.question.mode == core::Mode::train; }

  void add_proof() {
    if (row_.proof) add_known(Metric::proof_ratio, row_.proof->worst_ratio, "observed");
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
  void add_ratio(Metric which, const std::optional<Ratio>& ratio) {
    if (!ratio) return;
    add_estimate(which, *ratio,
                 !statistics_.reliable()   ? kNotReliableMethod
                 : ratio->rests_on.empty() ? std::string("the reference")
                 : statistics_.together()  ? "interleaved, interval of " + ratio->rests_on
                                           : "one after the other, interval of " + ratio->rests_on);
  }
  void add_break_even(Metric which, const std::optional<BreakEven>& even) {
    if (!even || even->never || even->inconclusive) return;
    add_estimate(which, Estimate(even->iterations, even->low, even->high), "starts and times");
  }

  void add_memory() {
    if (!row_.memory) return;
    const auto& memory = *row_.memory;
    for (const auto& [which, bytes] : {std::pair{Metric::idle_memory, memory.idle_private_bytes},
                                       {Metric::steady_memory, memory.steady_private_bytes},
                                       {Metric::peak_memory, memory.peak_private_bytes},
                                       {Metric::memory_above_idle, memory.above_idle_bytes},
                                       {Metric::steady_share_memory, memory.steady_pss_bytes},
                                       {Metric::shared_file_memory, memory.shared_file_bytes}})
      add_known(which, bytes, "observed");
    add_known(Metric::device_peak_memory, memory.device_peak_bytes, "reported");
  }

  void add_starts() {
    if (row_.start_up.empty()) return;
    add(Metric::warm_start, statistics_.start_range(row_), "median of the starts");
    using store::StartUp;
    for (const auto& [which, part] : {std::pair{Metric::start_process, &StartUp::process_ms},
                                      {Metric::start_library, &StartUp::library_ms},
                                      {Metric::start_load, &StartUp::load_ms},
                                      {Metric::start_build, &StartUp::build_ms},
                                      {Metric::start_weights, &StartUp::weights_ms},
                                      {Metric::start_first_iteration, &StartUp::first_iteration_ms}})
      add(which, start_part(row_, part), "median of the starts");
    if (const auto ms = cold_start(row_, &store::ColdStart::total_ms)) add(Metric::cold_start, *ms, "one start");
    if (const auto ms = cold_start(row_, &store::ColdStart::prepare_ms)) add(Metric::prepare_time, *ms, "one start");
  }

  void add_sizes() {
    add_known(Metric::disk, row_.disk_bytes, "observed");
    add_known(Metric::artefact_size, row_.artefact_bytes, "reported");
    add_known(Metric::shipped_size, shipped_bytes(row_), "observed");
    if (const auto& libraries = row_.info.libraries) add_known(Metric::library_size, libraries->bytes, "observed");
    if (const auto& lines = row_.info.lines) add(Metric::code_lines, lines->total, "count");
  }

  void add_passes() {
    if (const auto& phases = row_.info.phases; is_train() && phases)
      for (const auto& [phase, ms] : phases->ms)
        if (ms) add(Metric::phase_time, *ms, "median of the pass", phase);
    if (const auto& eval = row_.info.eval; eval && eval->is_scored())
      add_known(Metric::score, eval->score, "the user's score()");
  }

  void add_clients() {
    if (!row_.info.clients) return;
    const auto clients = clients_of(*row_.info.clients, batch_, statistics_.sigma(), statistics_.reliable());
    for (const auto& point : clients.points) {
      if (!point.is_measured()) continue;
      const auto setting = fmt::format("{} {}", point.clients, point.as);
      const auto how = fmt::format("{} repetitions", point.repetitions);
      add_estimate(Metric::requests_per_s, *point.requests_per_s, how, setting);
      add_estimate(Metric::inputs_per_s, *point.inputs_per_s, how, setting);
      add_estimate(Metric::request_p50, point.latency_ms->p50, how, setting);
      add_estimate(Metric::request_p90, point.latency_ms->p90, how, setting);
      add_estimate(Metric::request_p99, point.latency_ms->p99, how, setting);
      add_known(Metric::request_cpu_time, point.cpu_ms, how, setting);
      add(Metric::serve_memory, point.memory->private_bytes, how, setting);
    }
  }

  void add_open_batch() {
    const auto open =
        open_batch(row_, statistics_.room(), statistics_.sigma(), statistics_.minimum(), statistics_.reliable());
    if (!open || !open->is_measured()) return;
    for (const auto& size : open->sizes) {
      const auto setting = fmt::format("batch {}", size.batch);
      add_known(Metric::open_batch_time, size.settled_ms, "median of both visits", setting);
      add_known(Metric::open_batch_first, size.first_ms, "one call", setting);
    }
    add_known(Metric::open_batch_recompiled, open->recompiled, "count");
    add_known(Metric::open_batch_recompile_time, open->recompile_ms, "first calls");
    if (open->against_fixed)
      add_estimate(Metric::open_batch_speedup, open->against_fixed->ratio,
                   statistics_.reliable() ? "interleaved" : kNotReliableMethod);
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
