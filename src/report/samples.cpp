// SPDX-License-Identifier: Apache-2.0
#include "report/samples.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/escape.hpp"
#include "report/table.hpp"

namespace strata::report {
using Json = nlohmann::json;
namespace {

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json row_json(const store::Case& run_case, const store::Row& row) {
  return {{"case", run_case.id},
          {"level", row.level},
          {"variant", row.variant},
          {"environment", row.environment.empty() ? Json() : Json(row.environment)},
          {"state", row.state}};
}

Json passes_of(const store::Case& run_case, const store::Row& row) {
  auto own = row_json(run_case, row);
  own.update({{"start_up", store::to_json(row.start_up)}, {"memory", store::to_json(row.memory)}});
  const auto info = store::to_json(row.info);
  for (const char* pass : {"phases", "tuning", "clients", "dynamic", "eval"})
    if (const auto record = info.find(pass); record != info.end()) own[pass] = *record;
  return own;
}

Json block_json(const store::Case& run_case, const store::Row& row, const store::Block& block) {
  auto own = row_json(run_case, row);
  own.update({{"instance", block.instance},
              {"restart", block.restart},
              {"round", block.round},
              {"position", block.position},
              {"start_ns", block.start_ns},
              {"wall_ns", block.wall_ns},
              {"latency_ns", block.latency_ns},
              {"cpu_ns", or_null(block.cpu_ns)},
              {"runq_ns", or_null(block.runq_ns)},
              {"check", block.check}});
  return own;
}

}  // namespace

std::string samples_csv(const store::Run& run) {
  std::string csv =
      "case,level,variant,environment,state,instance,restart,round,position,iteration,wall_ns,latency_ns\n";
  for (const auto& run_case : run.cases)
    for (const auto& row : run_case.rows)
      for (const auto& block : row.blocks)
        for (std::size_t i = 0; i < block.wall_ns.size(); ++i)
          csv += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{}\n", csv_field(run_case.id), csv_field(row.level),
                             csv_field(row.variant), csv_field(row.environment), to_string(row.state), block.instance,
                             block.restart, block.round, block.position, i, block.wall_ns[i], block.latency_ns[i]);
  return csv;
}

std::string samples_json(const store::Run& run) {
  Json blocks = Json::array(), passes = Json::array();
  for (const auto& run_case : run.cases)
    for (const auto& row : run_case.rows) {
      passes.push_back(passes_of(run_case, row));
      for (const auto& block : row.blocks) blocks.push_back(block_json(run_case, row, block));
    }
  const Json all{{"schema", "strata.samples/1"}, {"run", run.run_id}, {"blocks", blocks}, {"passes", passes}};
  return escape::json(all.dump(-1, ' ', false, Json::error_handler_t::replace)) + "\n";
}

}  // namespace strata::report
