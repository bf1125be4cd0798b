// SPDX-License-Identifier: Apache-2.0
// From a bundle to the program that the generator writes, for the processor of this machine.
#pragma once

#include <filesystem>

#include "common/result.hpp"
#include "compiler/program.hpp"

namespace strata::generate {

// `kernels`: those to prefer, as measured. Errors: the bundle has no captured graph (with capture's
// reason), and what the compiler says.
Result<compiler::Program> program_of(const std::filesystem::path& bundle, const compiler::Kernels& kernels = {});

}  // namespace strata::generate
