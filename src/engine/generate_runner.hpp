// SPDX-License-Identifier: Apache-2.0
// The network as a static C++ program that needs neither PyTorch nor Python nor strata.
#pragma once

#include <filesystem>
#include <string>

#include "engine/events.hpp"
#include "requests/request.hpp"

namespace strata::engine {

struct Generated {
  std::filesystem::path folder;
  std::string summary;      // of the program, in words
  std::string build, test;  // commands
};

// All of the folder appears, or nothing.
Result<Generated> run_generate(const requests::GenerateRequest& request, EventSink& events);

}  // namespace strata::engine
