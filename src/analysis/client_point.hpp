// SPDX-License-Identifier: Apache-2.0
// What the repetitions of one number of clients say (measure/serve.hpp stores them): rates and quantiles with
// intervals.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "stats/compare.hpp"

namespace strata::analysis {

struct ClientPoint {
  int clients = 1;
  std::string as = "threads", state = "failed";  // only `measured` has numbers
  std::size_t repetitions = 0, samples = 0;      // samples: requests whose time was taken
  double requests = 0, cpu_ms = stats::nan, private_bytes = 0, pss_bytes = 0;
  stats::Interval requests_per_s, p50_ms, p90_ms, p99_ms;
};

// `stored`: an entry of a row's `clients.points`.
ClientPoint client_point(const nlohmann::json& stored, double process_sigma);

}  // namespace strata::analysis
