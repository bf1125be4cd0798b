// SPDX-License-Identifier: Apache-2.0
// Which levels a case is too large for, since they ran out of memory at a smaller one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/case.hpp"
#include "worker/worker.hpp"

namespace strata::plan {

// Whether `a` needs no less memory than `b`: of the same network, mode, precision, device and threads, with a batch and
// inputs that are no smaller.
bool no_smaller(const core::Case& a, const core::Case& b);

class OutOfMemoryCases {
 public:
  // `level`: with its variant and environment.
  void add(const std::string& level, const core::Case& question);
  // By name the levels that this case is too large for, and why.
  std::map<std::string, worker::Failure> skipped(const core::Case& question) const;

 private:
  std::vector<std::pair<std::string, core::Case>> seen_;
};

}  // namespace strata::plan
