// SPDX-License-Identifier: Apache-2.0
#include "report/slo.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "analysis/case_statistics.hpp"
#include "analysis/estimate.hpp"
#include "plan/clients.hpp"
#include "report/clients.hpp"
#include "report/format.hpp"
#include "stats/clients.hpp"

namespace strata::report {
using analysis::finite;
using analysis::process_sigma;
namespace {

// One way that a level was measured, with all that its sentence needs.
struct Point {
  stats::LoadPoint load;
  std::size_t samples = 0;
  double batch = 1, clients = 1;
  std::string as;  // threads, processes, or turns: the blocks of the comparison itself
};

Point from_turns(const Json& row, const store::Row& stored, const plan::Slo& slo, double batch, double sigma) {
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
  return {
      .load = {number(row, "throughput_per_s").value_or(0), stats::quantile_over_repetitions(ms, slo.quantile, sigma)},
      .samples = samples,
      .batch = batch,
      .clients = 1,
      .as = "turns"};
}

Point from_clients(const Json& point, const plan::Slo& slo, double batch) {
  const auto end = [&](const char* part, double unknown) {
    return number(point, fmt::format("latency_ms.{}.{}", slo.name, part)).value_or(unknown);
  };
  constexpr double infinite = std::numeric_limits<double>::infinity();
  return {.load = {number(point, "inputs_per_s.value").value_or(0),
                   {end("value", stats::nan), end("low", -infinite), end("high", infinite)}},
          .samples = static_cast<std::size_t>(number(point, "latency_ms.samples").value_or(0)),
          .batch = batch,
          .clients = number(point, "clients").value_or(1),
          .as = text(point, "as")};
}

// The turns count where no pass of one client did: both ask for one request at a time.
void add_points(std::vector<Point>& points, const Json& row, const store::Row& stored, const plan::Slo& slo,
                double batch, double sigma) {
  bool alone = false;
  for (const auto& point : list(row, "clients.points"))
    if (is_measured(point)) {
      points.push_back(from_clients(point, slo, batch));
      alone = alone || points.back().clients == 1;
    }
  if (!alone) points.push_back(from_turns(row, stored, slo, batch, sigma));
}

std::string sentence(const std::string& level, const Point& point, stats::MeetsLimit meets, const plan::Slo& slo) {
  const auto how =
      fmt::format("batch {:.0f}, {}, {} inputs/s", point.batch, clients_name(point.clients, point.as),
                  point.load.inputs_per_s < 999.5 ? ratio(point.load.inputs_per_s) : count(point.load.inputs_per_s));
  const auto& ms = point.load.ms;
  const auto few = fmt::format("{} requests are too few to bound it, {} would do",
                               count(static_cast<double>(point.samples)), stats::needed_for_quantile(slo.quantile));
  const auto range = std::isfinite(ms.high)
                         ? fmt::format("{} to {}", std::isfinite(ms.low) ? duration(ms.low) : "0", duration(ms.high))
                         : few;
  if (meets == stats::MeetsLimit::yes)
    return fmt::format("{}: {} at {} {} (at most {})", level, how, slo.name, duration(ms.value), duration(ms.high));
  if (meets == stats::MeetsLimit::maybe)
    return fmt::format("{} may meet it: {} at {} {} ({})", level, how, slo.name, duration(ms.value), range);
  return fmt::format("{} misses it by {}: {} is {} at its best ({})", level, duration(ms.value - slo.limit_ms),
                     slo.name, duration(ms.value), how);
}

Json level_json(const Json& row, const std::vector<Point>& points, const plan::Slo& slo) {
  std::vector<stats::LoadPoint> loads;
  for (const auto& point : points) loads.push_back(point.load);
  const auto chosen = stats::choose_point(loads, slo.limit_ms);
  if (!chosen) return {};
  const auto& point = points[chosen->index];
  const auto& ms = point.load.ms;
  const char* verdict = chosen->meets == stats::MeetsLimit::yes     ? "meets"
                        : chosen->meets == stats::MeetsLimit::maybe ? "may_meet"
                                                                    : "misses";
  return {{"level", row["level"]},
          {"variant", row["variant"]},
          {"environment", row["environment"]},
          {"verdict", verdict},
          {"batch", point.batch},
          {"clients", point.clients},
          {"as", point.as},
          {"inputs_per_s", finite(point.load.inputs_per_s)},
          {"quantile_ms", {{"value", finite(ms.value)}, {"low", finite(ms.low)}, {"high", finite(ms.high)}}},
          {"miss_ms", chosen->meets == stats::MeetsLimit::no ? finite(ms.value - slo.limit_ms) : Json()},
          {"samples", point.samples},
          {"needed_samples", stats::needed_for_quantile(slo.quantile)},
          {"sentence", sentence(level_name(row), point, chosen->meets, slo)}};
}

// Others had the cores that the case's threads need: its times say nothing of what a level would need alone.
bool is_judged(const Json& one_case) {
  return at(one_case, "trust.reliable") != false;
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
  return run_case.question.without_batch().canonical() + text(run_case.bundle, "case.weights_label");
}

}  // namespace

void add_slo(const store::Run& run, Json& cases) {
  for (auto& run_case : cases) run_case["slo"] = nullptr;
  const auto slo = plan::parse_slo(run.settings.slo);
  if (!slo) return;
  std::map<std::string, std::size_t> first;  // of each network
  std::map<std::pair<std::size_t, std::string>, std::vector<Point>> points;
  std::map<std::size_t, std::vector<double>> unreliable;  // batches of each network
  for (std::size_t c = 0; c < cases.size(); ++c) {
    const auto owner = first.emplace(network_of(run.cases[c]), c).first->second;
    const auto batch = static_cast<double>(run.cases[c].question.batch);
    if (!is_judged(cases[c])) {
      unreliable[owner].push_back(batch);
      continue;
    }
    const double sigma = process_sigma(run.cases[c].trust, run.cases[c].question.threads);
    for (std::size_t r = 0; r < cases[c]["rows"].size(); ++r) {
      const auto& row = cases[c]["rows"][r];
      if (is_measured(row) && !flag(row, "harness"))
        add_points(points[{owner, level_name(row)}], row, run.cases[c].rows[r], *slo, batch, sigma);
    }
  }
  for (const auto& [network, owner] : first) {
    Json levels = Json::array();
    std::vector<std::string> named;
    for (std::size_t c = owner; c < cases.size(); ++c)  // a level may have a number in a later case only
      for (const Json* row : sorted_rows(cases[c])) {
        const auto it = points.find({owner, level_name(*row)});
        if (it == points.end() || std::find(named.begin(), named.end(), level_name(*row)) != named.end()) continue;
        named.push_back(level_name(*row));
        if (auto level = level_json(*row, it->second, *slo); level.is_object()) levels.push_back(std::move(level));
      }
    cases[owner]["slo"] = {{"quantile", slo->name},
                           {"limit_ms", slo->limit_ms},
                           {"levels", std::move(levels)},
                           {"note", left_out(unreliable[owner])}};
  }
}

std::string slo_title(const Json& one_case) {
  const auto limit = number(one_case, "slo.limit_ms");
  return limit ? fmt::format("{} within {}", text(one_case, "slo.quantile"), duration(*limit)) : "";
}

std::vector<std::string> slo_lines(const Json& one_case) {
  std::vector<std::string> lines;
  if (const auto note = text(one_case, "slo.note"); !note.empty()) lines.push_back(note);
  for (const auto& level : list(one_case, "slo.levels")) lines.push_back(text(level, "sentence"));
  return lines;
}

}  // namespace strata::report
