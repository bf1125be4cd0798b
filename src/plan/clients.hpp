// SPDX-License-Identifier: Apache-2.0
// The options `--clients 1,2,4` and `--slo p99=20ms`.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"

namespace strata::plan {

// Numbers of requests in flight, in ascending order. Errors: none, not a whole number, below 1, over 256, given twice.
Result<std::vector<int>> parse_clients(const std::string& text);

// A limit on a quantile of the time of one request.
struct Slo {
  std::string name;     // p50, p90 or p99
  double quantile = 0;  // 0.99
  double limit_ms = 0;
};
Result<Slo> parse_slo(const std::string& text);

}  // namespace strata::plan
