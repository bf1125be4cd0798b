// SPDX-License-Identifier: Apache-2.0
// From a captured graph to the program that the generator writes: lower(), then the passes in their order.
#pragma once

#include <string>
#include <string_view>

#include "common/result.hpp"
#include "compiler/program.hpp"
#include "graph/backward/backward.hpp"

namespace strata::compiler {

// Channels in a block that suit this machine: 16 with AVX-512, else 8.
std::int64_t native_block();

struct Options {
  std::int64_t block = 16;  // channels in a block: 16 for AVX-512, else 8
  std::string stop_after;   // a pass's name, or "lower"; empty: all passes
  Kernels kernels = {};     // those to prefer, as measured; the rules of kernels.hpp decide for other steps
  Target target = Target::cpu;
  std::optional<MemoryBudget> budget = {};  // of a training step
  graph::Type type = graph::Type::float32;  // float32, or bfloat16 for inference
};

// The program is verified, and has offsets wherever it stops. Errors: an unknown pass (all are listed); what lower()
// and the passes say, with the node and its place in the model; another type than Options allows.
Result<Program> compile(graph::Graph graph, const Options& options = {});
// A training step (training.hpp).
Result<Program> compile(graph::TrainingGraph training, const Options& options = {});

// The error for a name that is neither "lower" nor a pass's; compile() checks it first.
Result<void> check_pass_name(const std::string& name);
// Whether a program that stops after the pass `last` has gone through `pass`.
bool reaches_pass(std::string_view last, std::string_view pass);

}  // namespace strata::compiler
