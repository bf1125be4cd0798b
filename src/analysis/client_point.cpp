// SPDX-License-Identifier: Apache-2.0
#include "analysis/client_point.hpp"

#include <algorithm>

#include "analysis/estimate.hpp"
#include "stats/clients.hpp"

namespace strata::analysis {
namespace {

void add_numbers(ClientPoint& point, const std::vector<store::ServedRepetition>& repetitions, double batch,
                 double process_sigma) {
  std::vector<double> rates;
  std::vector<std::vector<double>> ms;  // of each repetition
  double cpu_ns = 0;
  LatencyQuantiles latency;
  ServingMemory memory;
  for (const auto& repetition : repetitions) {
    rates.push_back(repetition.requests_per_s);
    ms.emplace_back();
    for (const auto ns : repetition.latency_ns) ms.back().push_back(static_cast<double>(ns) * 1e-6);
    latency.samples += static_cast<std::int64_t>(ms.back().size());
    latency.requests += static_cast<double>(repetition.requests);
    cpu_ns += repetition.cpu_ns ? static_cast<double>(*repetition.cpu_ns) : stats::nan;
    memory.private_bytes = std::max(memory.private_bytes, static_cast<double>(repetition.private_bytes));
    memory.pss_bytes = std::max(memory.pss_bytes, static_cast<double>(repetition.pss_bytes));
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

ClientPoint point_of(const store::ServedPoint& served, double batch, double process_sigma) {
  ClientPoint point{.clients = served.clients,
                    .threads_each = served.threads_each,
                    .as = served.as,
                    .state = served.state,
                    .reason = served.reason,
                    .hint = served.hint,
                    .repetitions = static_cast<std::int64_t>(served.repetitions.size())};
  if (point.is_measured()) add_numbers(point, served.repetitions, batch, process_sigma);
  return point;
}

}  // namespace

Clients clients_of(const store::ServedClients& served, double batch, double process_sigma, bool reliable) {
  Clients clients{.seconds = served.seconds, .cores = served.cores, .reliable = reliable};
  for (const auto& point : served.points) clients.points.push_back(point_of(point, batch, process_sigma));
  return clients;
}

}  // namespace strata::analysis
