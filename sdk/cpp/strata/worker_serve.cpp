// SPDX-License-Identifier: Apache-2.0
// The worker's operation `serve` (docs/protocol.md): several requests in flight in this process.
#include <fmt/format.h>

#include "strata/serving.hpp"
#include "strata/worker.hpp"

namespace strata {

using nlohmann::json;

json Worker::serve_clients(const json& request) {
  need_inputs();
  if (stepper_) throw Failure("bad_request", "the case that is loaded is of mode train", "serve is for inference");
  const auto clients = count_field(request, "clients", 1), threads = count_field(request, "threads", 1);
  if (clients > 256) throw Failure("bad_request", fmt::format("field 'clients' is {}", clients), "allowed: 1 to 256");
  ServePlan plan;
  plan.min_ns = count_field(request, "min_ns", 0);
  plan.max_requests = count_field(request, "max_requests", 1);
  plan.samples = static_cast<std::size_t>(count_field(request, "samples", 1));
  plan.checks = static_cast<std::size_t>(count_field(request, "checks", 0));
  plan.seed = static_cast<std::uint64_t>(count_field(request, "seed", 0));
  if (const auto begin = request.find("begin_ns"); begin != request.end() && !begin->is_null())
    plan.begin_ns = field<std::int64_t>(request, "begin_ns");
  const auto out = plan.checks > 0 ? field<std::string>(request, "out") : std::string();
  const auto callers = can<Servable>()->clients(static_cast<int>(clients), static_cast<int>(threads));
  const Served served = strata::serve_clients(callers, ring_, plan);
  json answers = json::array();
  for (std::size_t client = 0; client < served.clients.size(); ++client) {
    const auto& client_record = served.clients[client];
    json checked = json::array();
    for (std::size_t i = 0; i < client_record.checked.size(); ++i) {
      const auto& [index, results] = client_record.checked[i];
      check_results(results);
      Named named;
      name_results(named, index, results);
      write(fmt::format("{}-{}-{}.safetensors", out, client, i), named);
      checked.push_back(index);
    }
    answers.push_back({{"requests", client_record.requests},
                       {"start_ns", client_record.start_ns},
                       {"wall_ns", client_record.wall_ns},
                       {"latency_ns", client_record.latency_ns},
                       {"done_ns", client_record.done_ns},
                       {"checked", std::move(checked)}});
  }
  return {{"clients", std::move(answers)}, {"cpu_ns", served.cpu_ns}};
}

}  // namespace strata
