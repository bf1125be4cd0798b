// SPDX-License-Identifier: Apache-2.0
#include "analysis/slo.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "analysis/case_statistics.hpp"
#include "analysis/estimate.hpp"
#include "common/lookup.hpp"
#include "plan/clients.hpp"
#include "stats/clients.hpp"

namespace strata::analysis {
namespace {

// One way that a level was measured.
struct Point {
  stats::LoadPoint load;
  std::size_t samples = 0;
  double batch = 1, clients = 1;
  std::string as;  // threads, processes, or turns: the blocks of the comparison itself
};

Point from_turns(const RowResult& row, const store::Row& stored, const plan::Slo& slo, double batch, double sigma) {
  std::map<int, std::vector<double>> by_restart;
  std::size_t samples = 0;
  for (const auto& block : stored.blocks)
    if (block.instance == 0)
      for (const auto ns : block.wall_ns) by_restart[block.restart].push_back(static_cast<double>(ns) * 1e-6);
  std::vector<std::vector<double>> ms;
  for (auto& [restart, times] : by_restart) {
    samples += times.size();
    ms.push_back(std::move(times));
  }
  return {.load = {row.throughput_per_s.value_or(0), stats::quantile_over_repetitions(ms, slo.quantile, sigma)},
          .samples = samples,
          .batch = batch,
          .clients = 1,
          .as = "turns"};
}

Point from_clients(const ClientPoint& point, const plan::Slo& slo, double batch) {
  const auto& latency = *point.latency_ms;
  const auto& quantile = slo.name == "p50" ? latency.p50 : slo.name == "p90" ? latency.p90 : latency.p99;
  constexpr double infinite = std::numeric_limits<double>::infinity();
  return {.load = {point.inputs_per_s->value.value_or(0),
                   {quantile.value.value_or(stats::nan), quantile.low.value_or(-infinite),
                    quantile.high.value_or(infinite)}},
          .samples = static_cast<std::size_t>(latency.samples),
          .batch = batch,
          .clients = static_cast<double>(point.clients),
          .as = point.as};
}

// The turns count where no pass of one client did: both ask for one request at a time.
void add_points(std::vector<Point>& points, const RowResult& row, const store::Row& stored, const plan::Slo& slo,
                double batch, double sigma) {
  bool alone = false;
  if (row.clients)
    for (const auto& point : row.clients->points)
      if (point.is_measured()) {
        points.push_back(from_clients(point, slo, batch));
        alone = alone || point.clients == 1;
      }
  if (!alone) points.push_back(from_turns(row, stored, slo, batch, sigma));
}

std::optional<SloLevel> slo_level(const RowResult& row, const std::vector<Point>& points, const plan::Slo& slo) {
  std::vector<stats::LoadPoint> loads;
  for (const auto& point : points) loads.push_back(point.load);
  const auto chosen = stats::choose_point(loads, slo.limit_ms);
  if (!chosen) return std::nullopt;
  const auto& point = points[chosen->index];
  const bool misses = chosen->meets == stats::MeetsLimit::no;
  return SloLevel{.level = row.level,
                  .variant = row.variant,
                  .environment = row.environment,
                  .verdict = misses                                      ? "misses"
                             : chosen->meets == stats::MeetsLimit::maybe ? "may_meet"
                                                                         : "meets",
                  .batch = point.batch,
                  .clients = point.clients,
                  .as = point.as,
                  .inputs_per_s = finite(point.load.inputs_per_s),
                  .quantile_ms = Estimate(point.load.ms),
                  .miss_ms = misses ? finite(point.load.ms.value - slo.limit_ms) : std::nullopt,
                  .samples = static_cast<std::int64_t>(point.samples),
                  .needed_samples = stats::needed_for_quantile(slo.quantile)};
}

// Which batches were measured in vain; "" for none.
std::string left_out(const std::vector<double>& batches) {
  if (batches.empty()) return "";
  std::string names;
  for (const double batch : batches) names += fmt::format("{}{:.0f}", names.empty() ? "" : ", ", batch);
  return fmt::format("not reliable at batch {}: other programs had the cores while it was measured", names);
}

// What cases have in common that differ in their batch only.
std::string network_of(const store::Case& run_case) {
  return run_case.question.without_batch().canonical() + lookup::text(run_case.bundle, "case.weights_label");
}

}  // namespace

void add_slo(const store::Run& run, std::vector<CaseResult>& cases) {
  const auto slo = plan::parse_slo(run.settings.slo);
  if (!slo) return;
  std::map<std::string, std::size_t> first;  // of each network
  std::map<std::pair<std::size_t, std::string>, std::vector<Point>> points;
  std::map<std::size_t, std::vector<double>> unreliable;  // batches of each network
  for (std::size_t c = 0; c < cases.size(); ++c) {
    const auto owner = first.emplace(network_of(run.cases[c]), c).first->second;
    const auto batch = static_cast<double>(run.cases[c].question.batch);
    if (!cases[c].trust.reliable) {  // its times say nothing of what a level would need alone
      unreliable[owner].push_back(batch);
      continue;
    }
    const double sigma = process_sigma(run.cases[c].trust, run.cases[c].question.threads);
    for (std::size_t r = 0; r < cases[c].rows.size(); ++r) {
      const auto& row = cases[c].rows[r];
      if (row.is_measured() && !row.harness)
        add_points(points[{owner, row.name()}], row, run.cases[c].rows[r], *slo, batch, sigma);
    }
  }
  for (const auto& [network, owner] : first) {
    SloResult result{.quantile = slo->name, .limit_ms = slo->limit_ms, .note = left_out(unreliable[owner])};
    std::vector<std::string> named;
    for (std::size_t c = owner; c < cases.size(); ++c)  // a level may have a number in a later case only
      for (const auto* row : cases[c].sorted_rows()) {
        const auto it = points.find({owner, row->name()});
        if (it == points.end() || std::find(named.begin(), named.end(), row->name()) != named.end()) continue;
        named.push_back(row->name());
        if (auto level = slo_level(*row, it->second, *slo)) result.levels.push_back(std::move(*level));
      }
    cases[owner].slo = std::move(result);
  }
}

}  // namespace strata::analysis
