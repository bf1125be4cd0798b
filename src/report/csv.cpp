// SPDX-License-Identifier: Apache-2.0
#include "report/csv.hpp"

#include <array>

#include "report/clients.hpp"
#include "report/table.hpp"

namespace strata::report {
namespace {

// Paths inside a row, in the order of the columns; a dot becomes an underscore in the header.
constexpr std::array<const char*, 88> kPaths{"level",
                                             "variant",
                                             "environment",
                                             "title",
                                             "rank",
                                             "language",
                                             "peer",
                                             "harness",
                                             "reference",
                                             "state",
                                             "reason",
                                             "end_to_end_ms.estimate",
                                             "end_to_end_ms.median",
                                             "end_to_end_ms.p90",
                                             "end_to_end_ms.p99",
                                             "end_to_end_ms.min",
                                             "end_to_end_ms.samples",
                                             "latency_ms.estimate",
                                             "latency_ms.median",
                                             "latency_ms.p90",
                                             "latency_ms.p99",
                                             "latency_ms.min",
                                             "latency_ms.samples",
                                             "throughput_per_s",
                                             "steps_per_s",
                                             "phases.ms.input",
                                             "phases.ms.to_device",
                                             "phases.ms.forward",
                                             "phases.ms.loss",
                                             "phases.ms.backward",
                                             "phases.ms.update",
                                             "cpu_ms",
                                             "ratio.value",
                                             "ratio.low",
                                             "ratio.high",
                                             "ratio.verdict",
                                             "ratio.same_within_percent",
                                             "ratio.smallest_visible_percent",
                                             "memory.idle_private_bytes",
                                             "memory.steady_private_bytes",
                                             "memory.peak_private_bytes",
                                             "memory.steady_pss_bytes",
                                             "memory.above_idle_bytes",
                                             "memory.shared_file_bytes",
                                             "memory.device_peak_bytes",
                                             "startup.process_ms",
                                             "startup.library_ms",
                                             "startup.load_ms",
                                             "startup.build_ms",
                                             "startup.weights_ms",
                                             "startup.first_iteration_ms",
                                             "startup.warm_start_ms",
                                             "startup.cold_start_ms",
                                             "startup.prepare_ms",
                                             "disk_bytes",
                                             "artefact_bytes",
                                             "break_even.iterations",
                                             "break_even.low",
                                             "break_even.high",
                                             "break_even.never",
                                             "break_even_once.iterations",
                                             "break_even_once.low",
                                             "break_even_once.high",
                                             "break_even_once.never",
                                             "shipped.bytes",
                                             "shipped.libraries_bytes",
                                             "lines.total",
                                             "dynamic.state",
                                             "dynamic.unseen",
                                             "dynamic.recompiled",
                                             "dynamic.recompile_ms",
                                             "dynamic.against_fixed.ratio.value",
                                             "dynamic.against_fixed.ratio.low",
                                             "dynamic.against_fixed.ratio.high",
                                             "proof.verdict",
                                             "proof.weak",
                                             "proof.observed",
                                             "proof.reported",
                                             "proof.assumed",
                                             "proof.first_difference",
                                             "aa.ratio.value",
                                             "aa.ratio.low",
                                             "aa.ratio.high",
                                             "tuned.ratio.value",
                                             "tuned.ratio.low",
                                             "tuned.ratio.high",
                                             "tuned.ratio.verdict",
                                             "repeat"};

// Paths inside a row's point of `accuracy`; columns accuracy_...
constexpr std::array<const char*, 15> kPoint{"ratio.value",
                                             "ratio.low",
                                             "ratio.high",
                                             "ratio.together",
                                             "error",
                                             "differ",
                                             "answers",
                                             "eval.state",
                                             "eval.reason",
                                             "eval.score",
                                             "eval.count",
                                             "eval.difference.value",
                                             "eval.difference.low",
                                             "eval.difference.high",
                                             "eval.differ"};

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
  for (const char* path : kPaths) header.push_back(column_name(path));
  for (const char* path : kPoint) header.push_back("accuracy_" + column_name(path));
  const auto clients = client_columns(run);
  header.insert(header.end(), clients.header.begin(), clients.header.end());
  std::vector<Cells> rows;
  for (const auto& one_case : list(run, "cases")) {
    for (const Json* row : sorted_rows(one_case)) {
      Cells cells{text(run, "run.id"), text(run, "run.state"), text(run, "run.resumed"), text(one_case, "id")};
      for (const char* path : kPaths) cells.push_back(text(*row, path));
      const Json& point = accuracy_point(run, text(one_case, "id"), *row);
      for (const char* path : kPoint) cells.push_back(text(point, path));
      const auto served = clients.cells(*row);
      cells.insert(cells.end(), served.begin(), served.end());
      rows.push_back(std::move(cells));
    }
  }
  return table(header, rows, Format::csv);
}

}  // namespace strata::report
