// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string_view>

#include "analysis/result_json.hpp"
#include "core/metric.hpp"
#include "report/access.hpp"
#include "report/clients.hpp"
#include "report/render_file.hpp"
#include "report/table.hpp"

namespace strata::report {
namespace {

// An object and its fields ("": the row's own).
struct Fields {
  std::string_view object;
  std::vector<std::string_view> names;
};

void add_paths(std::vector<std::string>& paths, const std::vector<Fields>& more) {
  for (const auto& [object, names] : more)
    for (const auto name : names) paths.push_back(fmt::format("{}{}{}", object, object.empty() ? "" : ".", name));
}

// Paths inside a row, in the order of the columns: who it is, every declared number that it has once, and what is said
// of them.
const std::vector<std::string>& row_paths() {
  static const auto paths = [] {
    std::vector<std::string> all;
    add_paths(all, {{"",
                     {"level", "variant", "environment", "title", "rank", "language", "peer", "harness", "reference",
                      "state", "reason"}}});
    for (const auto& metric : core::kMetrics)
      if (metric.is_column())
        for (auto& path : metric.paths()) all.push_back(std::move(path));
    add_paths(all, {{"phases.ms", {"input", "to_device", "forward", "loss", "backward", "update"}},
                    {"ratio", {"verdict", "same_within_percent", "smallest_visible_percent"}},
                    {"break_even", {"never"}},
                    {"break_even_once", {"never"}},
                    {"dynamic", {"state", "unseen"}},
                    {"proof", {"verdict", "weak", "observed", "reported", "assumed", "first_difference"}},
                    {"aa.ratio", {"value", "low", "high"}},
                    {"tuned.ratio", {"verdict"}},
                    {"", {"repeat"}}});
    return all;
  }();
  return paths;
}

// Paths inside a row's point of `accuracy`; columns accuracy_...
const std::vector<std::string>& point_paths() {
  static const auto paths = [] {
    std::vector<std::string> all;
    add_paths(all, {{"ratio", {"value", "low", "high", "together"}},
                    {"", {"error", "differ", "answers"}},
                    {"eval", {"state", "reason", "score", "count"}},
                    {"eval.difference", {"value", "low", "high"}},
                    {"eval", {"differ"}}});
    return all;
  }();
  return paths;
}

// The point of a row, or null.
Json accuracy_point(const analysis::RunResult& run, const std::string& case_id, const analysis::RowResult& row) {
  for (const auto& group : run.accuracy)
    for (const auto& point : group.points)
      if (point.case_id == case_id && point.level == row.level && point.variant == row.variant &&
          point.environment == row.environment)
        return analysis::to_json(point);
  return {};
}

void add_cells(Cells& cells, const Json& node, const std::vector<std::string>& paths) {
  for (const auto& path : paths) cells.push_back(text(node, path));
}

std::string column_name(std::string path) {
  for (auto& c : path)
    if (c == '.') c = '_';
  return path;
}

}  // namespace

std::string csv(const analysis::RunResult& run) {
  Cells header{"run", "run_state", "run_resumed", "case"};
  for (const auto& path : row_paths()) header.push_back(column_name(path));
  for (const auto& path : point_paths()) header.push_back("accuracy_" + column_name(path));
  const auto clients = client_columns(run);
  header.insert(header.end(), clients.header.begin(), clients.header.end());
  std::vector<Cells> rows;
  for (const auto& one_case : run.cases) {
    for (const auto* row : one_case.sorted_rows()) {
      Cells cells{run.run.id, run.run.state, std::to_string(run.run.resumed), one_case.id};
      add_cells(cells, analysis::to_json(*row), row_paths());
      add_cells(cells, accuracy_point(run, one_case.id, *row), point_paths());
      const auto served = clients.cells(*row);
      cells.insert(cells.end(), served.begin(), served.end());
      rows.push_back(std::move(cells));
    }
  }
  return table({header.begin(), header.end()}, rows, Format::csv);
}

}  // namespace strata::report
