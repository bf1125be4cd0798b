// SPDX-License-Identifier: Apache-2.0
#include "analysis/row_result.hpp"

#include <algorithm>
#include <map>

#include "analysis/blocks.hpp"
#include "analysis/client_point.hpp"
#include "analysis/estimate.hpp"
#include "analysis/open_batch.hpp"
#include "analysis/row_numbers.hpp"

namespace strata::analysis {
namespace {

TimeSummary summary_of(const std::vector<double>& ms, const stats::ShownTime& estimate) {
  const auto s = stats::summarise(ms);
  return {.estimate = finite(estimate.milliseconds),
          .median = finite(s.median),
          .p90 = finite(s.p90),
          .p99 = finite(s.p99),
          .min = finite(s.min),
          .is_median = estimate.is_median,
          .samples = static_cast<std::int64_t>(s.count)};
}

StartUp startup_of(const store::Row& row, const CaseStatistics& statistics) {
  const auto part = [&](auto member) { return finite(start_part(row, member)); };
  using Start = store::StartUp;
  StartUp start{.process_ms = part(&Start::process_ms),
                .library_ms = part(&Start::library_ms),
                .load_ms = part(&Start::load_ms),
                .build_ms = part(&Start::build_ms),
                .weights_ms = part(&Start::weights_ms),
                .first_iteration_ms = part(&Start::first_iteration_ms),
                .warm_start_ms = finite(statistics.start_range(row).value),
                .prepare_ms = cold_start(row, &store::ColdStart::prepare_ms)};
  if (row.info.cold_start) start.cold_start_ms = row.info.cold_start->total_ms;
  return start;
}

// Everything that goes to another machine: the artefact, and the code that the process mapped from outside the system.
std::optional<Shipped> shipped_of(const store::Row& row) {
  const auto bytes = shipped_bytes(row);
  if (!bytes) return std::nullopt;
  return Shipped{.bytes = *bytes,
                 .libraries_bytes = row.info.libraries->bytes,
                 .artefact_bytes = *row.artefact_bytes,
                 .libraries = row.info.libraries->files};
}

std::vector<BlockSummary> blocks_of(const store::Row& row, const CaseStatistics& statistics) {
  std::map<int, std::int64_t> began;  // of each restart
  for (const auto* other : statistics.measured())
    for (const auto& block : other->blocks) {
      const auto [it, fresh] = began.emplace(block.restart, block.start_ns);
      if (!fresh) it->second = std::min(it->second, block.start_ns);
    }
  const auto why = disturbances(row, statistics.room());
  std::vector<BlockSummary> blocks;
  for (std::size_t i = 0; i < row.blocks.size(); ++i) {
    const auto& block = row.blocks[i];
    if (block.instance != 0) continue;
    const std::vector<double> walls(block.wall_ns.begin(), block.wall_ns.end());
    blocks.push_back({.restart = block.restart,
                      .round = block.round,
                      .position = block.position,
                      .time_s = static_cast<double>(block.start_ns - began.at(block.restart)) * 1e-9,
                      .median_ms = finite(stats::median(walls) * 1e-6),
                      .disturbed = !why[i].empty(),
                      .why = why[i]});
  }
  return blocks;
}

AgainstItself against_itself(const store::Row& row, const CaseStatistics& statistics) {
  const auto comparison = statistics.aa(row);
  auto assumed = comparison;
  assumed.log_ratio = comparison.assumed_only;
  return {.ratio = Estimate(comparison.ratio()),
          .verdict = verdict_of(statistics.direction(comparison)),
          .rests_on = std::string(stats::to_string(comparison.half_width.basis)),
          .learned = learned_from_runs(comparison),
          .by_restart = by_restart(comparison),
          .if_assumed = {Estimate(assumed.ratio()), verdict_of(statistics.direction(assumed))}};
}

// What the samples of a measured row say.
void add_samples(RowResult& out, const store::Run& run, const store::Case& run_case, std::size_t i,
                 const CaseStatistics& statistics) {
  const auto& row = *statistics.measured()[i];
  const auto numbers = row_numbers(statistics, i, static_cast<double>(run_case.question.batch));
  out.end_to_end_ms = summary_of(numbers.wall_ms, numbers.time);
  out.latency_ms = summary_of(numbers.latency_ms, numbers.latency);
  out.throughput_per_s = finite(numbers.throughput_per_s);
  if (run_case.question.mode == core::Mode::train) {
    out.steps_per_s = finite(1000.0 / numbers.time.milliseconds);
    out.phases = row.info.phases;
  }
  out.profile = row.info.profile;
  if (numbers.cpu_ms) out.cpu_ms = finite(*numbers.cpu_ms);
  const auto reference = statistics.reference();
  out.ratio = statistics.ratio(reference, i);
  out.break_even = statistics.break_even(reference, i);
  out.break_even_once = statistics.break_even_once(reference, i);
  if (statistics.is_tuned(i)) {
    const auto tuned = statistics.tuned_reference();
    out.tuned =
        Tuned{statistics.ratio(tuned, i), statistics.break_even(tuned, i), statistics.break_even_once(tuned, i)};
  }
  const auto bars = stats::histogram(numbers.wall_ms);
  out.histogram = Histogram{bars.edges, {bars.counts.begin(), bars.counts.end()}};
  out.blocks = blocks_of(row, statistics);
  if (run.settings.aa) out.aa = against_itself(row, statistics);
}

}  // namespace

RowResult row_result(const store::Run& run, const store::Case& run_case, const store::Row& row,
                     const CaseStatistics& statistics) {
  const auto& info = row.info;
  RowResult out{.level = row.level,
                .variant = row.variant,
                .environment = row.environment,
                .title = info.title,
                .language = info.language,
                .rank = info.rank,
                .peer = info.peer,
                .harness = info.harness,
                .reference = row.name() == run_case.reference_level,
                .state = row.state,
                .reason = row.reason,
                .reason_short = info.reason_short.value_or(""),
                .hint = row.hint,
                .log_tail = row.log_tail,
                .repeat = row.repeat,
                .default_text = info.default_text,
                .memory = row.memory,
                .disk_bytes = row.disk_bytes,
                .artefact_bytes = row.artefact_bytes,
                .shipped = shipped_of(row),
                .lines = info.lines,
                .settings = settings_beside(row.settings, info.facts),
                .facts = info.facts,
                .proof = row.proof,
                .deep = info.deep,
                .tuning = info.tuning};
  if (!row.start_up.empty()) out.startup = startup_of(row, statistics);
  if (info.clients)
    out.clients = clients_of(*info.clients, static_cast<double>(run_case.question.batch), statistics.sigma(),
                             statistics.reliable());
  out.dynamic = open_batch(row, statistics.room(), statistics.sigma(), statistics.minimum(), statistics.reliable());
  if (row.state == State::measured)
    if (const auto i = statistics.index_of(row.name())) add_samples(out, run, run_case, *i, statistics);
  return out;
}

nlohmann::json settings_beside(const nlohmann::json& settings, const nlohmann::json& facts) {
  if (!settings.is_object() || !facts.is_object()) return settings;
  auto out = nlohmann::json::object();
  for (const auto& [name, value] : settings.items())
    if (!facts.contains(name)) out[name] = settings_beside(value, facts);
  return out;
}

}  // namespace strata::analysis
