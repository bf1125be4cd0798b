// SPDX-License-Identifier: Apache-2.0
// The request `serve` (docs/protocol.md) as a typed call.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>

#include "session/session.hpp"
#include "worker/answers.hpp"

namespace strata::session {
namespace {

constexpr std::int64_t kMostRequests =
    2'000'000;  // of one client: a level that does next to nothing shall not fill the memory
constexpr std::chrono::seconds kUntilBegin{1};  // clients of several processes wait for a common start

}  // namespace

Try<ServeAnswer> Session::serve(const ServeRequest& request) {
  static std::atomic<int> count{0};
  const std::string prefix =
      (job_->scratch / fmt::format("{}-{}-serve-{}", job_->level.name(), worker_->pid(), count++)).string();
  auto answer = STRATA_TRY(call("serve",
                                {{"clients", request.clients},
                                 {"threads", request.threads},
                                 {"min_ns", request.at_least.count()},
                                 {"max_requests", kMostRequests},
                                 {"samples", request.samples},
                                 {"checks", request.checks},
                                 {"seed", request.seed >> 16},
                                 {"begin_ns", request.begin_ns ? Json(request.begin_ns) : Json()},
                                 {"out", prefix}},
                                std::chrono::ceil<std::chrono::milliseconds>(request.at_least) + kUntilBegin));
  auto reader = fields(answer, "serve");
  const Json& client_list = reader.array("clients");
  if (client_list.size() != static_cast<std::size_t>(request.clients))
    reader.complain("clients", client_list, fmt::format("a list of {} entries", request.clients));
  ServeAnswer out;
  out.cpu_ns = reader.integer_or_null("cpu_ns");
  for (std::size_t client = 0; client < client_list.size() && !reader.error(); ++client) {
    outside::Fields client_reader(client_list[client], fmt::format("{}: client {}", reader.where(), client),
                                  reader.hint());
    const auto sampled = client_reader.array("latency_ns").size();
    const auto least = static_cast<std::int64_t>(std::max<std::size_t>(1, sampled));
    const auto latency = client_reader.integers("latency_ns", std::nullopt, 0, worker::longest_ns),
               done = client_reader.integers("done_ns", sampled, 0, worker::longest_ns);
    if (sampled == 0) client_reader.complain("latency_ns", Json::array(), "a list of at least one time");
    const auto requests = client_reader.integer("requests", least, kMostRequests),
               start = client_reader.integer("start_ns", 0, std::numeric_limits<std::int64_t>::max() / 2),
               wall = client_reader.integer("wall_ns", 1, worker::longest_ns);
    if (!client_reader.error()) {
      // Both read the monotonic clock: a client cannot have begun before it was asked, nor ended after its answer came.
      auto why = proof::impossible_sum(fmt::format("client {} took", client), static_cast<double>(wall),
                                       static_cast<double>(std::min(waited_ns_, asked_ns_ + waited_ns_ - start)));
      if (why.empty() && start < asked_ns_)
        why = fmt::format("client {} began {} ns before it was asked", client, asked_ns_ - start);
      for (std::size_t i = 0; i < latency.size() && why.empty(); ++i)
        if (latency[i] > wall || done[i] > wall)
          why = fmt::format("client {}: request {} took {} ns and was done at {} ns of {} ns", client, i, latency[i],
                            done[i], wall);
      if (!why.empty()) return tl::unexpected(impossible("serve", why));
    }
    out.clients.push_back(
        {.start_ns = start, .wall_ns = wall, .requests = requests, .latency_ns = latency, .done_ns = done});
    const auto ring = outside::integer_or(job_->bundle->info, "ring", 1);
    std::vector<std::int64_t> checked;
    if (client_reader.find("checked"))
      checked = client_reader.integers("checked", std::nullopt, 0, std::max<std::int64_t>(0, ring - 1));
    if (checked.size() > static_cast<std::size_t>(request.checks))
      client_reader.complain("checked", client_list[client]["checked"],
                             fmt::format("a list of at most {} indices", request.checks));
    for (std::size_t i = 0; i < checked.size(); ++i)
      out.checked.emplace_back(static_cast<int>(checked[i]), fmt::format("{}-{}-{}.safetensors", prefix, client, i));
    if (client_reader.error()) return tl::unexpected(broken(client_reader));
  }
  if (reader.error()) return tl::unexpected(broken(reader));
  return out;
}

}  // namespace strata::session
