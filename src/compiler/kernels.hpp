// SPDX-License-Identifier: Apache-2.0
// Which steps strata's own kernels (runtime/kit) can compute, and where they should: faster than the library by
// what was measured (docs/results: kernels). Nothing else knows these rules.
#pragma once

#include <nlohmann/json.hpp>

#include "compiler/program.hpp"

namespace strata::compiler {

// The step's shapes, layouts and posts are such as the kernel takes. True of the library for every step.
bool can_run(const Program& program, const Step& step, Kernel kernel);

// The one that Program::wanted names, if it can run the step as it stands, with its layouts; else what should be the
// fastest. Throws graph::ArgumentError.
Kernel best_kernel(const Program& program, const Step& step);

// Of times {node: {kernel: microseconds}}, each node's fastest kernel; what has another form is left out.
Kernels fastest_kernels(const nlohmann::json& times);

}  // namespace strata::compiler
