// SPDX-License-Identifier: Apache-2.0
#include "report/trace.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "report/operations.hpp"

namespace strata::report {
using Json = nlohmann::json;
namespace {

constexpr double kMicrosecondsPerMs = 1000;

Json named(int process, const char* what, const std::string& name) {
  return {{"ph", "M"}, {"name", what}, {"ts", 0}, {"pid", process}, {"tid", process}, {"args", {{"name", name}}}};
}

Json span(int process, const char* category, const std::string& name, double begin_ms, double ms, Json args) {
  return {{"ph", "X"},
          {"cat", category},
          {"name", name},
          {"pid", process},
          {"tid", process},
          {"ts", begin_ms * kMicrosecondsPerMs},
          {"dur", ms * kMicrosecondsPerMs},
          {"args", std::move(args)}};
}

// `next`: the next operation's number, which no other of the trace has.
void add_profile(Json& events, int process, const store::OperationProfile& profile, int& next) {
  events.push_back(
      span(process, "user_annotation", "ProfilerStep#0", 0, profile.profiled_ms, {{"External id", next++}}));
  double at = 0;
  for (const auto& operation : profile.operations) {
    at += operation.gap_ms;
    Json args = {{"External id", next++}, {"Input Dims", operation.shapes}};
    if (operation.layer) args["Module Hierarchy"] = *operation.layer;
    if (!operation.kernel.empty()) args["kernel"] = operation.kernel;
    events.push_back(span(process, "cpu_op", operation.operation, at, operation.ms, std::move(args)));
    at += operation.ms;
  }
}

}  // namespace

Result<std::string> trace_json(const analysis::RunResult& run) {
  Json events = Json::array();
  int process = 0, next = 1;
  for (const auto& one_case : run.cases)
    for (const auto& row : one_case.rows) {
      if (!row.profile || row.profile->operations.empty()) continue;
      ++process;
      const auto name = run.cases.size() == 1 ? row.name() : fmt::format("{}, {}", row.name(), one_case.id);
      events.push_back(named(process, "process_name", name));
      events.push_back(named(process, "thread_name", "operations"));
      add_profile(events, process, *row.profile, next);
    }
  if (process == 0) return tl::unexpected(no_profile(run));
  const Json trace = {{"schemaVersion", 1},
                      {"traceName", run.run.id},
                      {"displayTimeUnit", "ms"},
                      {"deviceProperties", Json::array()},
                      {"traceEvents", std::move(events)}};
  return trace.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace strata::report
