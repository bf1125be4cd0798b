// SPDX-License-Identifier: Apache-2.0
// The timed region of several callers at once: each a thread that sends its next request when the answer to its last
// one is there (a closed loop). The other timed region is timed_loop.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "strata/bundle.hpp"
#include "strata/level.hpp"

namespace strata {

struct ServePlan {
  std::int64_t min_ns = 0, max_requests = 1;  // for so long, but not more requests of one client
  std::uint64_t seed = 0;                     // of ring indices, samples and checks
  std::size_t samples = 0, checks = 0;        // of each client, at most
  std::optional<std::int64_t> begin_ns;       // the clock's time at which all begin; empty: when all are warm
};

struct ServedClient {
  std::int64_t requests = 0, start_ns = 0, wall_ns = 0;
  std::vector<std::int64_t> latency_ns, done_ns;  // of the sampled requests; `done_ns` counts from start_ns
  std::vector<std::pair<std::size_t, std::vector<HostTensor>>> checked;  // ring index and results of checked requests
};

struct Served {
  std::vector<ServedClient> clients;
  std::int64_t cpu_ns = 0;  // of the process
};

// Rethrows what a client threw, after all have ended.
Served serve_clients(const std::vector<std::unique_ptr<Client>>& clients, const Ring& ring, const ServePlan& plan);

}  // namespace strata
