// SPDX-License-Identifier: Apache-2.0
#include "analysis/client_point.hpp"

#include <algorithm>
#include <cmath>

#include "common/lookup.hpp"
#include "common/outside.hpp"
#include "stats/clients.hpp"

namespace strata::analysis {

ClientPoint client_point(const nlohmann::json& stored, double process_sigma) {
  ClientPoint point;
  point.clients = lookup::whole(stored, "clients", 1);
  point.as = outside::text_or(stored, "as", "threads");
  point.state = outside::text_or(stored, "state", "failed");
  const auto& repetitions = lookup::list(stored, "repetitions");
  point.repetitions = repetitions.size();
  if (point.state != "measured") return point;
  std::vector<double> rates;
  std::vector<std::vector<double>> ms;  // of each repetition
  double cpu_ns = 0;
  for (const auto& repetition : repetitions) {
    const auto of = [&](const char* name, double unknown) {
      return lookup::number(repetition, name).value_or(unknown);
    };
    rates.push_back(of("requests_per_s", 0));
    ms.emplace_back();
    for (const auto& ns : lookup::list(repetition, "latency_ns"))
      if (ns.is_number()) ms.back().push_back(ns.get<double>() * 1e-6);
    point.samples += ms.back().size();
    point.requests += of("requests", 0);
    cpu_ns += of("cpu_ns", stats::nan);
    point.private_bytes = std::max(point.private_bytes, of("private_bytes", 0));
    point.pss_bytes = std::max(point.pss_bytes, of("pss_bytes", 0));
  }
  const auto quantile = [&](double q) { return stats::quantile_over_repetitions(ms, q, process_sigma); };
  point.requests_per_s = stats::over_repetitions(rates, process_sigma);
  point.p50_ms = quantile(0.5);
  point.p90_ms = quantile(0.9);
  point.p99_ms = quantile(0.99);
  point.cpu_ms = cpu_ns / point.requests * 1e-6;
  return point;
}

}  // namespace strata::analysis
