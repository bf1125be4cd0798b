// SPDX-License-Identifier: Apache-2.0
#include "analysis/row_numbers.hpp"

#include <algorithm>
#include <cmath>

#include "analysis/blocks.hpp"
#include "stats/clients.hpp"

namespace strata::analysis {
namespace {

// Between the restarts' own times, each a process of its own.
void add_restarts(RowNumbers& out, const CaseStatistics& statistics, const store::Row& row) {
  const auto logs = restart_log_times(row, statistics.room());
  std::vector<double> times;
  double mean = 0, squares = 0;
  for (const double log : logs) times.push_back(std::exp(log));
  for (const double log : logs) mean += log / static_cast<double>(logs.size());
  for (const double log : logs) squares += (log - mean) * (log - mean);
  if (logs.size() > 1) out.restart_spread = std::sqrt(squares / static_cast<double>(logs.size() - 1));
  const auto range = stats::over_repetitions(times, statistics.sigma());
  const double ms = out.time.milliseconds;
  out.time_ms = {ms, ms * range.low / range.value, ms * range.high / range.value};
}

}  // namespace

RowNumbers row_numbers(const CaseStatistics& statistics, std::size_t i, double batch) {
  RowNumbers out;
  const auto& row = *statistics.measured()[i];
  const auto why = disturbances(row, statistics.room());
  double cpu_ns = 0, blocks = 0, disturbed = 0;
  bool has_cpu = true;
  for (std::size_t b = 0; b < row.blocks.size(); ++b) {
    const auto& block = row.blocks[b];
    if (block.instance != 0) continue;
    for (const auto ns : block.wall_ns) out.wall_ms.push_back(static_cast<double>(ns) * 1e-6);
    for (const auto ns : block.latency_ns) out.latency_ms.push_back(static_cast<double>(ns) * 1e-6);
    has_cpu = has_cpu && block.cpu_ns.has_value();
    cpu_ns += static_cast<double>(block.cpu_ns.value_or(0));
    ++blocks;
    disturbed += !why[b].empty();
  }
  const double estimate = statistics.estimate_ms(i),
               ratio_of_medians = stats::median(out.latency_ms) / stats::median(out.wall_ms);
  out.time = {estimate, statistics.estimate_is_median(i)};
  out.latency = stats::shown_time(estimate * ratio_of_medians, out.latency_ms, 0);
  out.throughput_per_s = batch * 1000.0 / estimate;
  if (has_cpu && !out.wall_ms.empty()) out.cpu_ms = cpu_ns / static_cast<double>(out.wall_ms.size()) * 1e-6;
  if (blocks > 0) out.disturbed_share = disturbed / blocks;
  add_restarts(out, statistics, row);
  return out;
}

double start_part(const store::Row& row, std::optional<double> store::StartUp::*part) {
  std::vector<double> values;
  for (const auto& start : row.start_up)
    if (start.*part && !start.cold) values.push_back(*(start.*part));
  return stats::median(values);
}

std::optional<double> cold_start(const store::Row& row, double store::ColdStart::*part) {
  const auto& cold = row.info.cold_start;
  return cold && *cold.*part > 0 ? std::optional(*cold.*part) : std::nullopt;
}

std::optional<std::int64_t> shipped_bytes(const store::Row& row) {
  const auto& libraries = row.info.libraries;
  if (!libraries || !row.artefact_bytes) return std::nullopt;
  constexpr std::int64_t most = std::int64_t{1} << 60;  // whose sum is no overflow
  return std::min(libraries->bytes, most) + std::min(*row.artefact_bytes, most);
}

}  // namespace strata::analysis
