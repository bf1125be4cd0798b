// SPDX-License-Identifier: Apache-2.0
#include "report/clients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace strata::report {
namespace {

constexpr std::array kPointColumns{"state",  "inputs_per_s", "inputs_per_s_low", "inputs_per_s_high",
                                   "p50_ms", "p99_ms",       "private_bytes",    "pss_bytes"};

// One for each of these columns; numbers as JSON has them.
Cells point_cells(const analysis::ClientPoint& point) {
  const auto shown = [](analysis::OptionalNumber value) { return value ? nlohmann::json(*value).dump() : ""; };
  const auto rate = point.inputs_per_s.value_or(analysis::Estimate());
  const auto latency = point.latency_ms.value_or(analysis::LatencyQuantiles());
  Cells cells{point.state,      shown(rate.value),        shown(rate.low),
              shown(rate.high), shown(latency.p50.value), shown(latency.p99.value)};
  for (const auto bytes : {&analysis::ServingMemory::private_bytes, &analysis::ServingMemory::pss_bytes})
    cells.push_back(point.memory ? shown((*point.memory).*bytes) : "");
  return cells;
}

std::pair<int, std::string> name_of(const analysis::ClientPoint& point) {
  return {point.clients, point.as};
}

}  // namespace

std::string clients_name(double clients, const std::string& as) {
  if (as == "processes") return fmt::format("{:.0f} processes", clients);
  return clients == 1 ? "1 client" : fmt::format("{:.0f} clients", clients);
}

Cells ClientColumns::cells(const analysis::RowResult& row) const {
  Cells out;
  for (const auto& name : points) {
    Cells own(kPointColumns.size());
    if (row.clients)
      for (const auto& point : row.clients->points)
        if (name_of(point) == name) own = point_cells(point);
    out.insert(out.end(), own.begin(), own.end());
  }
  return out;
}

ClientColumns client_columns(const analysis::RunResult& run) {
  ClientColumns out;
  for (const auto& one_case : run.cases)
    for (const auto& row : one_case.rows) {
      if (!row.clients) continue;
      for (const auto& point : row.clients->points)
        if (std::ranges::find(out.points, name_of(point)) == out.points.end()) out.points.push_back(name_of(point));
    }
  for (const auto& [clients, as] : out.points)
    for (const auto* title : kPointColumns) out.header.push_back(fmt::format("clients_{}_{}_{}", clients, as, title));
  return out;
}

}  // namespace strata::report
