// SPDX-License-Identifier: Apache-2.0
// Metrics and series: what of a run is selected by, in rows of their own.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "store/statement.hpp"
#include "store/store.hpp"

namespace strata::store {
namespace {

constexpr double kAnyNumber = std::numeric_limits<double>::max();

std::optional<core::Metric> metric_named(const std::string& name) {
  const auto entry =
      std::find_if(core::kMetrics.begin(), core::kMetrics.end(), [&](const auto& about) { return about.name == name; });
  if (entry == core::kMetrics.end()) return std::nullopt;
  return static_cast<core::Metric>(entry - core::kMetrics.begin());
}

bool write_metric(sqlite3* handle, const Metric& metric) {
  const auto& about = core::about(metric.which);
  return execute(handle,
                 "INSERT INTO metrics(row_id,pass,name,setting,unit,value,low,high,method) VALUES(?,?,?,?,?,?,?,?,?)",
                 metric.row_id, std::string(about.pass), std::string(about.name), metric.setting,
                 std::string(about.unit), metric.value, metric.low, metric.high, metric.method);
}

}  // namespace

Result<void> Store::set_metrics(const std::string& run_id, const std::string& case_key,
                                const std::vector<Metric>& metrics) {
  constexpr const char* doing = "cannot write the metrics of a case";
  Transaction all(handle());
  if (!all.is_open() ||
      !execute(handle(),
               "DELETE FROM metrics WHERE row_id IN (SELECT row_id FROM level_rows WHERE run_id=? AND hash=?)", run_id,
               case_key))
    return connection_.broken(doing);
  for (const auto& metric : metrics)
    if (!write_metric(handle(), metric)) return connection_.broken(doing);
  if (!execute(handle(), "UPDATE run_cases SET metrics_version=? WHERE run_id=? AND hash=?", core::kMetricsVersion,
               run_id, case_key) ||
      !all.commit())
    return connection_.broken(doing);
  return {};
}

Result<std::vector<Metric>> Store::metrics(const std::string& run_id) const {
  Statement ask(handle(),
                "SELECT row_id,name,setting,value,low,high,method FROM metrics WHERE row_id IN (SELECT row_id FROM "
                "level_rows WHERE run_id=?)");
  ask.bind(run_id);
  std::vector<Metric> all;
  while (ask.step()) {
    Metric metric;
    metric.row_id = ask.integer();
    const auto which = metric_named(ask.text());
    metric.setting = ask.text();
    metric.value = ask.real(-kAnyNumber, kAnyNumber);
    metric.low = ask.optional_real(-kAnyNumber, kAnyNumber);
    metric.high = ask.optional_real(-kAnyNumber, kAnyNumber);
    metric.method = ask.text();
    if (!ask.fault().empty()) return connection_.damaged("a metric: " + ask.fault());
    if (!which) continue;  // of a newer strata
    metric.which = *which;
    all.push_back(std::move(metric));
  }
  if (!ask.ok()) return connection_.broken("cannot read the metrics");
  std::sort(all.begin(), all.end(), [](const Metric& a, const Metric& b) {
    return std::tie(a.row_id, a.which, a.setting) < std::tie(b.row_id, b.which, b.setting);
  });
  return all;
}

Result<std::vector<std::string>> Store::runs_without_metrics() const {
  Statement ask(handle(),
                "SELECT run_id FROM runs WHERE EXISTS(SELECT 1 FROM run_cases c WHERE c.run_id = runs.run_id AND "
                "c.metrics_version<?) ORDER BY started, rowid");
  ask.bind(core::kMetricsVersion);
  std::vector<std::string> ids;
  while (ask.step()) ids.push_back(ask.text());
  if (!ask.ok()) return connection_.broken("cannot look for runs without metrics");
  return ids;
}

Result<void> Store::add_series(std::int64_t row_id, const std::vector<Series>& all) {
  constexpr const char* doing = "cannot write a series";
  Transaction together(handle());
  if (!together.is_open()) return connection_.broken(doing);
  for (const auto& element : all) {
    if (element.positions.size() != element.values.size())
      return fail(fmt::format("series {}: {} positions and {} values", element.name, element.positions.size(),
                              element.values.size()));
    for (std::size_t i = 0; i < element.positions.size(); ++i) {
      const auto value = std::isfinite(element.values[i]) ? std::optional(element.values[i]) : std::nullopt;
      if (!execute(handle(),
                   "INSERT OR REPLACE INTO series(row_id,name,unit,axis,repeat,position,value) VALUES(?,?,?,?,?,?,?)",
                   row_id, element.name, element.unit, element.axis, element.repeat, element.positions[i], value))
        return connection_.broken(doing);
    }
  }
  if (!together.commit()) return connection_.broken(doing);
  return {};
}

Result<std::vector<Series>> Store::series(std::int64_t row_id) const {
  constexpr std::int64_t most_repeats = 1'000'000;
  Statement ask(handle(),
                "SELECT name,unit,axis,repeat,position,value FROM series WHERE row_id=? "
                "ORDER BY name,axis,repeat,position");
  ask.bind(row_id);
  std::vector<Series> all;
  while (ask.step()) {
    Series stored{.name = ask.text(), .unit = ask.text(), .axis = ask.text()};
    stored.repeat = static_cast<int>(ask.integer(0, most_repeats));
    const auto position = ask.integer();
    const auto value = ask.optional_real(-kAnyNumber, kAnyNumber);
    if (!ask.fault().empty()) return connection_.damaged("a series: " + ask.fault());
    const bool goes_on = !all.empty() && all.back().name == stored.name && all.back().axis == stored.axis &&
                         all.back().repeat == stored.repeat;
    if (!goes_on) all.push_back(std::move(stored));
    all.back().positions.push_back(position);
    all.back().values.push_back(value.value_or(std::numeric_limits<double>::quiet_NaN()));
  }
  if (!ask.ok()) return connection_.broken("cannot read a series");
  return all;
}

}  // namespace strata::store
