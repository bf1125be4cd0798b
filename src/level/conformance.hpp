// SPDX-License-Identifier: Apache-2.0
// Does a program keep docs/protocol.md? Every rule and operation, tried on the program itself, one line a check.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "level/level.hpp"
#include "worker/worker.hpp"

namespace strata::level {

enum class Verdict { pass, fail, skip };

struct Check {
  std::string name;  // what the level must do, as a sentence without a subject
  Verdict verdict = Verdict::pass;
  std::string why;  // of a fail or skip; a remark on a pass
};

// What is checked. Without a level (any executable) what level.json says is not compared with what the program says.
struct Subject {
  worker::Launch launch;             // its log_path receives the log of the worker that runs
  std::vector<std::string> prepare;  // expanded; empty: none
  std::optional<Level> level;
  std::filesystem::path bundle, scratch;     // scratch: an empty folder for caches and outputs
  std::chrono::milliseconds timeout{60000};  // for one request; load and prepare get ten times as much
};

// Writes a bundle (docs/bundle.md) small enough to be made without PyTorch into `folder` (made if missing), which the
// suite gives to any level: second(relu(first(x))), two linear layers; examples/tiny_mlp.py is the same network as a
// PyTorch module. `model` goes into the case: "/path/tiny_mlp.py:build" or a bare name. Weights and inputs are drawn
// from a fixed seed; the reference is computed in double precision.
Result<void> write_tiny_bundle(const std::filesystem::path& folder, const std::string& model);

// Runs every check, tells each as it ends, and returns them all. Stops early only when interrupted.
std::vector<Check> check_conformance(const Subject& subject, const std::function<void(const Check&)>& tell);

}  // namespace strata::level
