// SPDX-License-Identifier: Apache-2.0
#include "report/clients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/client_point.hpp"
#include "analysis/estimate.hpp"
#include "common/outside.hpp"
#include "stats/clients.hpp"

namespace strata::report {
using analysis::finite;
using analysis::interval;
namespace {

// One stored point with its statistics.
Json point_json(const Json& stored, double batch, double process_sigma) {
  Json out{{"clients", whole(stored, "clients", 1)},
           {"as", outside::text_or(stored, "as", "threads")},
           {"threads_each", whole(stored, "threads_each", 1)},
           {"state", outside::text_or(stored, "state", "failed")},
           {"reason", text(stored, "reason")},
           {"hint", text(stored, "hint")},
           {"repetitions", list(stored, "repetitions").size()}};
  for (const char* numbers : {"requests_per_s", "inputs_per_s", "latency_ms", "cpu_ms", "memory"})
    out[numbers] = nullptr;
  if (out["state"] != "measured") return out;
  const auto point = analysis::client_point(stored, process_sigma);
  out["requests_per_s"] = interval(point.requests_per_s);
  out["inputs_per_s"] = interval(point.requests_per_s, batch);
  out["latency_ms"] = {{"p50", interval(point.p50_ms)},
                       {"p90", interval(point.p90_ms)},
                       {"p99", interval(point.p99_ms)},
                       {"samples", point.samples},
                       {"requests", point.requests}};
  out["cpu_ms"] = finite(point.cpu_ms);
  out["memory"] = {{"private_bytes", point.private_bytes}, {"pss_bytes", point.pss_bytes}};
  return out;
}

constexpr std::array<std::pair<const char*, const char*>, 8> kColumns{{{"state", "state"},
                                                                       {"inputs_per_s", "inputs_per_s.value"},
                                                                       {"inputs_per_s_low", "inputs_per_s.low"},
                                                                       {"inputs_per_s_high", "inputs_per_s.high"},
                                                                       {"p50_ms", "latency_ms.p50.value"},
                                                                       {"p99_ms", "latency_ms.p99.value"},
                                                                       {"private_bytes", "memory.private_bytes"},
                                                                       {"pss_bytes", "memory.pss_bytes"}}};

}  // namespace

Json clients_json(const Json& stored, double batch, double process_sigma, bool reliable) {
  if (!stored.is_object()) return {};
  Json points = Json::array();
  for (const auto& point : list(stored, "points")) points.push_back(point_json(point, batch, process_sigma));
  return {{"seconds", at(stored, "seconds")},
          {"cores", at(stored, "cores")},
          {"reliable", reliable},
          {"points", std::move(points)}};
}

std::string clients_name(double clients, const std::string& as) {
  if (as == "processes") return fmt::format("{:.0f} processes", clients);
  return clients == 1 ? "1 client" : fmt::format("{:.0f} clients", clients);
}

Cells ClientColumns::cells(const Json& row) const {
  Cells out;
  for (const auto& [clients, as] : points) {
    const Json none;
    const Json* match = &none;
    for (const auto& point : list(row, "clients.points"))
      if (number(point, "clients") == clients && text(point, "as") == as) match = &point;
    for (const auto& [title, path] : kColumns) out.push_back(text(*match, path));
  }
  return out;
}

ClientColumns client_columns(const Json& run) {
  ClientColumns out;
  for (const auto& one_case : list(run, "cases"))
    for (const auto& row : list(one_case, "rows"))
      for (const auto& point : list(row, "clients.points")) {
        const std::pair point_id(number(point, "clients").value_or(1), text(point, "as"));
        if (std::find(out.points.begin(), out.points.end(), point_id) == out.points.end())
          out.points.push_back(point_id);
      }
  for (const auto& [clients, as] : out.points)
    for (const auto& [title, path] : kColumns)
      out.header.push_back(fmt::format("clients_{:.0f}_{}_{}", clients, as, title));
  return out;
}

}  // namespace strata::report
