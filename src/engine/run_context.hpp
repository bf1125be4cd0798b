// SPDX-License-Identifier: Apache-2.0
// The run that answers a request.
#pragma once

#include <optional>
#include <string>

#include "requests/request.hpp"
#include "store/record.hpp"

namespace strata::engine {

using requests::CompareRequest;
using requests::SweepRequest;
using requests::TrainRequest;

struct RunContext {
  std::string command;                  // how it was asked for, as a shell reads it
  std::optional<store::Run> resumed;    // the run that goes on
  std::optional<store::OfSuite> suite;  // the suite run that this is a part of (docs/suites.md)
  bool dry_run = false;                 // nothing is installed or measured
};

}  // namespace strata::engine
