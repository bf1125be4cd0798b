// SPDX-License-Identifier: Apache-2.0
// --clients: several requests in flight. What goes wrong there takes nothing from a row but its clients.
#include "measure/serve.hpp"

#include <fmt/format.h>

#include "measure/passes/pass.hpp"
#include "plan/clients.hpp"

namespace strata::measure {

Result<void> serve_levels(CaseRun& point) {
  const auto clients = plan::parse_clients(point.setting.options.clients);
  const ServePlan plan{.clients = clients.value_or(std::vector<int>{}),
                       .repetitions = std::clamp(point.setting.effort.restarts, 3, 6),
                       .seconds = point.setting.effort.serve_s,
                       .threads = point.threads(),
                       .seed = point.setting.order_seed};
  point.failed = STRATA_TRY(serve_clients(point.participants, point.references.outputs(), plan, point.progress));
  for (auto& participant : point.participants) STRATA_TRY(point.sink.row(participant.row));
  return {};
}

}  // namespace strata::measure
