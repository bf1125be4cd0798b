// SPDX-License-Identifier: Apache-2.0
// A suite as `run` begins it and `resume` goes on with it.
#pragma once

#include <string>

#include "common/result.hpp"
#include "store/record.hpp"

namespace strata::cli {

// `strata resume` of a suite's run; empty format: as it began.
struct ResumedWith {
  std::string store, format, python;
};
Result<int> resume_suite(store::Run run, const ResumedWith& with);

}  // namespace strata::cli
