// SPDX-License-Identifier: Apache-2.0
// One level for one case: all that is needed to start a worker of it.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "level/level.hpp"
#include "plan/bundle.hpp"
#include "worker/worker.hpp"

namespace strata::plan {

struct Job {
  level::Level level;
  const Bundle* bundle = nullptr;
  std::filesystem::path cache;             // of this level, network and environment; exists
  std::filesystem::path scratch;           // for the tensors of this worker; exists
  worker::Launch launch;                   // argv, environment, log
  std::string references_shown;            // why the worker could read what it is judged by; empty: it cannot
  worker::ProgressCallback progress = {};  // of its worker and its prepare command; empty: nobody looks
  std::chrono::milliseconds timeout{600000};
  bool allow_debug = false;
};

}  // namespace strata::plan
