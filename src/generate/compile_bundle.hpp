// SPDX-License-Identifier: Apache-2.0
// From a bundle to the program that the generator writes, for the processor of this machine or for a GPU.
#pragma once

#include <filesystem>

#include "common/result.hpp"
#include "compiler/program.hpp"
#include "core/case.hpp"
#include "graph/backward/backward.hpp"

namespace strata::generate {

// In bfloat16 where the bundle's case is in bf16 or amp-bf16.
// Of a bundle of mode train the training step with the case's loss, for which the budget is. `kernels`: those to
// prefer, as measured. Errors: the bundle has no captured graph (with capture's reason), and what differentiation and
// the compiler say.
Result<compiler::Program> compile_bundle(const std::filesystem::path& bundle, const compiler::Kernels& kernels = {},
                                         compiler::Target target = compiler::Target::cpu,
                                         std::optional<compiler::MemoryBudget> budget = {});
// The type in which a program of a case in this precision calculates.
graph::Type type_of(core::Precision precision);
// Of a bundle of mode train: the network with the case's loss and all gradients.
Result<graph::TrainingGraph> training_of(const std::filesystem::path& bundle);
// Of a bundle of mode train: the forward pass in eval mode.
Result<compiler::Program> compile_evaluation(const std::filesystem::path& bundle,
                                             compiler::Target target = compiler::Target::cpu);

}  // namespace strata::generate
