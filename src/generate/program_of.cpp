// SPDX-License-Identifier: Apache-2.0
#include "generate/program_of.hpp"

#include "compiler/compile.hpp"
#include "generate/graph_of.hpp"

namespace strata::generate {

Result<compiler::Program> program_of(const std::filesystem::path& bundle, const compiler::Kernels& kernels) {
  auto graph = graph_of(bundle);
  if (!graph) return tl::unexpected(graph.error());
  return compiler::compile(*std::move(graph), {compiler::native_block(), "", kernels});
}

}  // namespace strata::generate
