// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string_view>

#include "report/clients.hpp"
#include "report/render_file.hpp"
#include "report/table.hpp"

namespace strata::report {
namespace {

// Paths inside a row, in the order of the columns: an object and its fields ("": the row's own).
struct Fields {
  std::string_view object;
  std::vector<std::string_view> names;
};

// The paths of all fields.
std::vector<std::string> paths_of(const std::vector<Fields>& all) {
  std::vector<std::string> paths;
  for (const auto& [object, names] : all)
    for (const auto name : names) paths.push_back(fmt::format("{}{}{}", object, object.empty() ? "" : ".", name));
  return paths;
}

const std::vector<std::string>& row_paths() {
  static const auto paths = paths_of({
      {"",
       {"level", "variant", "environment", "title", "rank", "language", "peer", "harness", "reference", "state",
        "reason"}},
      {"end_to_end_ms", {"estimate", "median", "p90", "p99", "min", "samples"}},
      {"latency_ms", {"estimate", "median", "p90", "p99", "min", "samples"}},
      {"", {"throughput_per_s", "steps_per_s"}},
      {"phases.ms", {"input", "to_device", "forward", "loss", "backward", "update"}},
      {"", {"cpu_ms"}},
      {"ratio", {"value", "low", "high", "verdict", "same_within_percent", "smallest_visible_percent"}},
      {"memory",
       {"idle_private_bytes", "steady_private_bytes", "peak_private_bytes", "steady_pss_bytes", "above_idle_bytes",
        "shared_file_bytes", "device_peak_bytes"}},
      {"startup",
       {"process_ms", "library_ms", "load_ms", "build_ms", "weights_ms", "first_iteration_ms", "warm_start_ms",
        "cold_start_ms", "prepare_ms"}},
      {"", {"disk_bytes", "artefact_bytes"}},
      {"break_even", {"iterations", "low", "high", "never"}},
      {"break_even_once", {"iterations", "low", "high", "never"}},
      {"shipped", {"bytes", "libraries_bytes"}},
      {"lines", {"total"}},
      {"dynamic", {"state", "unseen", "recompiled", "recompile_ms"}},
      {"dynamic.against_fixed.ratio", {"value", "low", "high"}},
      {"proof", {"verdict", "weak", "observed", "reported", "assumed", "first_difference"}},
      {"aa.ratio", {"value", "low", "high"}},
      {"tuned.ratio", {"value", "low", "high", "verdict"}},
      {"", {"repeat"}},
  });
  return paths;
}

// Paths inside a row's point of `accuracy`; columns accuracy_...
const std::vector<std::string>& point_paths() {
  static const auto paths = paths_of({
      {"ratio", {"value", "low", "high", "together"}},
      {"", {"error", "differ", "answers"}},
      {"eval", {"state", "reason", "score", "count"}},
      {"eval.difference", {"value", "low", "high"}},
      {"eval", {"differ"}},
  });
  return paths;
}

// The point of a row, or null.
const Json& accuracy_point(const Json& run, const std::string& case_id, const Json& row) {
  static const Json none;
  for (const auto& group : list(run, "accuracy"))
    for (const auto& point : list(group, "points"))
      if (text(point, "case") == case_id && text(point, "level") == text(row, "level") &&
          text(point, "variant") == text(row, "variant") && text(point, "environment") == text(row, "environment"))
        return point;
  return none;
}

std::string column_name(std::string path) {
  for (auto& c : path)
    if (c == '.') c = '_';
  return path;
}

}  // namespace

std::string csv(const Json& run) {
  Cells header{"run", "run_state", "run_resumed", "case"};
  for (const auto& path : row_paths()) header.push_back(column_name(path));
  for (const auto& path : point_paths()) header.push_back("accuracy_" + column_name(path));
  const auto clients = client_columns(run);
  header.insert(header.end(), clients.header.begin(), clients.header.end());
  std::vector<Cells> rows;
  for (const auto& one_case : list(run, "cases")) {
    for (const Json* row : sorted_rows(one_case)) {
      Cells cells{text(run, "run.id"), text(run, "run.state"), text(run, "run.resumed"), text(one_case, "id")};
      for (const auto& path : row_paths()) cells.push_back(text(*row, path));
      const Json& point = accuracy_point(run, text(one_case, "id"), *row);
      for (const auto& path : point_paths()) cells.push_back(text(point, path));
      const auto served = clients.cells(*row);
      cells.insert(cells.end(), served.begin(), served.end());
      rows.push_back(std::move(cells));
    }
  }
  return table(header, rows, Format::csv);
}

}  // namespace strata::report
