// SPDX-License-Identifier: Apache-2.0
// The request `serve` (docs/protocol.md) as a typed call.
#include <fmt/format.h>

#include <atomic>

#include "measure/session.hpp"
#include "worker/answers.hpp"

namespace strata::measure {
namespace {

constexpr std::int64_t kMostRequests =
    2'000'000;  // of one client: a level that does next to nothing shall not fill the memory
constexpr std::chrono::seconds kUntilBegin{1};  // clients of several processes wait for a common start

}  // namespace

Try<ServeAnswer> Session::serve(const ServeRequest& request) {
  static std::atomic<int> count{0};
  const std::string prefix =
      (job_.scratch / fmt::format("{}-{}-serve-{}", job_.level.name(), worker_->pid(), count++)).string();
  auto answer = call("serve",
                     {{"clients", request.clients},
                      {"threads", request.threads},
                      {"min_ns", request.at_least.count()},
                      {"max_requests", kMostRequests},
                      {"samples", request.samples},
                      {"checks", request.checks},
                      {"seed", request.seed >> 16},
                      {"begin_ns", request.begin_ns ? Json(request.begin_ns) : Json()},
                      {"out", prefix}},
                     std::chrono::ceil<std::chrono::milliseconds>(request.at_least) + kUntilBegin);
  if (!answer) return tl::unexpected(answer.error());
  const auto told = answer->find("clients");
  if (told == answer->end() || !told->is_array() || told->size() != static_cast<std::size_t>(request.clients))
    return tl::unexpected(bad_answer("serve", fmt::format("\"clients\" must have {} entries", request.clients)));
  ServeAnswer out;
  for (std::size_t client = 0; client < told->size(); ++client) {
    const Json& one = (*told)[client];
    const auto sampled =
        one.is_object() && one.contains("latency_ns") && one["latency_ns"].is_array() ? one["latency_ns"].size() : 0;
    const auto latency = worker::read_integers(one, "latency_ns", sampled),
               done = worker::read_integers(one, "done_ns", sampled);
    const auto requests = worker::read_optional_integer(one, "requests"),
               start = worker::read_optional_integer(one, "start_ns"),
               wall = worker::read_optional_integer(one, "wall_ns");
    if (!latency || !done) return tl::unexpected(latency ? done.error() : latency.error());
    if (!requests || !start || !wall || !*requests || !*start || !*wall || **wall <= 0 ||
        **requests < static_cast<std::int64_t>(sampled) || sampled == 0)
      return tl::unexpected(bad_answer(
          "serve", fmt::format("client {} needs requests, start_ns, wall_ns and at least one latency_ns", client)));
    out.clients.push_back({**start, **wall, **requests, *latency, *done});
    const auto checked = one.value("checked", Json::array());
    for (std::size_t i = 0; i < checked.size(); ++i) {
      if (!checked[i].is_number_integer())
        return tl::unexpected(bad_answer("serve", "\"checked\" must list ring indices"));
      out.checked.emplace_back(checked[i].get<int>(), fmt::format("{}-{}-{}.safetensors", prefix, client, i));
    }
  }
  const auto cpu = worker::read_optional_integer(*answer, "cpu_ns");
  if (!cpu) return tl::unexpected(cpu.error());
  out.cpu_ns = *cpu;
  return out;
}

}  // namespace strata::measure
