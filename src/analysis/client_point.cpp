// SPDX-License-Identifier: Apache-2.0
#include "analysis/client_point.hpp"

#include <algorithm>

#include "analysis/estimate.hpp"
#include "common/lookup.hpp"
#include "common/outside.hpp"
#include "stats/clients.hpp"

namespace strata::analysis {
namespace {

void add_numbers(ClientPoint& point, const nlohmann::json& repetitions, double batch, double process_sigma) {
  std::vector<double> rates;
  std::vector<std::vector<double>> ms;  // of each repetition
  double cpu_ns = 0;
  LatencyQuantiles latency;
  ServingMemory memory;
  for (const auto& repetition : repetitions) {
    const auto of = [&](const char* name, double unknown) {
      return lookup::number(repetition, name).value_or(unknown);
    };
    rates.push_back(of("requests_per_s", 0));
    ms.emplace_back();
    for (const auto& ns : lookup::list(repetition, "latency_ns"))
      if (ns.is_number()) ms.back().push_back(ns.get<double>() * 1e-6);
    latency.samples += static_cast<std::int64_t>(ms.back().size());
    latency.requests += of("requests", 0);
    cpu_ns += of("cpu_ns", stats::nan);
    memory.private_bytes = std::max(memory.private_bytes, of("private_bytes", 0));
    memory.pss_bytes = std::max(memory.pss_bytes, of("pss_bytes", 0));
  }
  const auto quantile = [&](double q) { return Estimate(stats::quantile_over_repetitions(ms, q, process_sigma)); };
  const auto rate = stats::over_repetitions(rates, process_sigma);
  point.requests_per_s = Estimate(rate);
  point.inputs_per_s = Estimate(rate, batch);
  latency.p50 = quantile(0.5);
  latency.p90 = quantile(0.9);
  latency.p99 = quantile(0.99);
  point.cpu_ms = finite(cpu_ns / latency.requests * 1e-6);
  point.latency_ms = latency;
  point.memory = memory;
}

ClientPoint point_of(const nlohmann::json& stored, double batch, double process_sigma) {
  const auto& repetitions = lookup::list(stored, "repetitions");
  ClientPoint point{.clients = lookup::whole(stored, "clients", 1),
                    .threads_each = lookup::whole(stored, "threads_each", 1),
                    .as = outside::text_or(stored, "as", "threads"),
                    .state = outside::text_or(stored, "state", "failed"),
                    .reason = lookup::text(stored, "reason"),
                    .hint = lookup::text(stored, "hint"),
                    .repetitions = static_cast<std::int64_t>(repetitions.size())};
  if (point.is_measured()) add_numbers(point, repetitions, batch, process_sigma);
  return point;
}

}  // namespace

std::optional<Clients> clients_of(const nlohmann::json& stored, double batch, double process_sigma, bool reliable) {
  if (!stored.is_object()) return std::nullopt;
  Clients clients{.seconds = lookup::number(stored, "seconds"), .reliable = reliable};
  if (const int cores = lookup::whole(stored, "cores", 0); cores > 0) clients.cores = cores;
  for (const auto& point : lookup::list(stored, "points"))
    clients.points.push_back(point_of(point, batch, process_sigma));
  return clients;
}

}  // namespace strata::analysis
