// SPDX-License-Identifier: Apache-2.0
// Which steps strata's own kernels (src/generate/kit) can compute, and where they should: faster than the library by
// what was measured (docs/results: kernels). Nothing else knows these rules.
#pragma once

#include "compiler/program.hpp"

namespace strata::compiler {

// The step's shapes, layouts and posts are such as the kernel takes. True of the library for every step.
bool can_run(const Program& program, const Step& step, Kernel kernel);

// The fastest for the step as it stands, with its layouts. Throws graph::ArgumentError.
Kernel best_kernel(const Program& program, const Step& step);

}  // namespace strata::compiler
