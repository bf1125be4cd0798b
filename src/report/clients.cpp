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

template <class Write>
std::string shown(const Json& point, const char* path, const Glyphs& glyphs, Write write) {
  const auto value = number(point, path);
  return value ? write(*value) : glyphs.missing;
}

// Three digits, and thousands parted from 1000 on.
std::string rate(double value) {
  return value < 999.5 ? ratio(value) : count(value);
}

std::string rate_with_interval(const Json& point, const Glyphs& glyphs) {
  const auto value = number(point, "inputs_per_s.value"), low = number(point, "inputs_per_s.low"),
             high = number(point, "inputs_per_s.high");
  if (!value) return glyphs.missing;
  return rate(*value) + (low && high ? fmt::format(" ({}{}{})", rate(*low), glyphs.range, rate(*high)) : "");
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

Json clients_json(const Json& stored, double batch, double process_sigma) {
  if (!stored.is_object()) return {};
  Json points = Json::array();
  for (const auto& point : list(stored, "points")) points.push_back(point_json(point, batch, process_sigma));
  return {{"seconds", at(stored, "seconds")}, {"cores", at(stored, "cores")}, {"points", std::move(points)}};
}

std::string clients_name(double clients, const std::string& as) {
  if (as == "processes") return fmt::format("{:.0f} processes", clients);
  return clients == 1 ? "1 client" : fmt::format("{:.0f} clients", clients);
}

ClientTable client_table(const Json& one_case, const Glyphs& glyphs, bool brief) {
  ClientTable out;
  out.header = {"level", "in flight", "inputs/s", "p50"};
  if (!brief) out.header.emplace_back("p90");
  out.header.insert(out.header.end(), {"p99", "memory"});
  if (!brief) out.header.emplace_back("PSS");
  for (const Json* row : sorted_rows(one_case))
    for (const auto& point : list(*row, "clients.points")) {
      Cells cells{level_name(*row), clients_name(number(point, "clients").value_or(1), text(point, "as"))};
      if (text(point, "state") != "measured") {
        auto state = text(point, "state");
        std::replace(state.begin(), state.end(), '_', ' ');
        cells.push_back(state + ": " + first_sentence(text(point, "reason")));
      } else {
        cells.insert(cells.end(),
                     {rate_with_interval(point, glyphs), shown(point, "latency_ms.p50.value", glyphs, duration)});
        if (!brief) cells.push_back(shown(point, "latency_ms.p90.value", glyphs, duration));
        // Without an upper end the highest of the few values says little about the quantile.
        const bool few = !number(point, "latency_ms.p99.high");
        cells.push_back(shown(point, "latency_ms.p99.value", glyphs, duration) + (few ? "?" : ""));
        cells.push_back(shown(point, "memory.private_bytes", glyphs, size));
        if (!brief) cells.push_back(shown(point, "memory.pss_bytes", glyphs, size));
      }
      out.rows.push_back(std::move(cells));
    }
  return out;
}

Cells ClientColumns::cells(const Json& row) const {
  Cells out;
  for (const auto& [clients, as] : points) {
    const Json none;
    const Json* found = &none;
    for (const auto& point : list(row, "clients.points"))
      if (number(point, "clients") == clients && text(point, "as") == as) found = &point;
    for (const auto& [title, path] : kColumns) out.push_back(text(*found, path));
  }
  return out;
}

ClientColumns client_columns(const Json& run) {
  ClientColumns out;
  for (const auto& one_case : list(run, "cases"))
    for (const auto& row : list(one_case, "rows"))
      for (const auto& point : list(row, "clients.points")) {
        const std::pair one(number(point, "clients").value_or(1), text(point, "as"));
        if (std::find(out.points.begin(), out.points.end(), one) == out.points.end()) out.points.push_back(one);
      }
  for (const auto& [clients, as] : out.points)
    for (const auto& [title, path] : kColumns)
      out.header.push_back(fmt::format("clients_{:.0f}_{}_{}", clients, as, title));
  return out;
}

}  // namespace strata::report
