// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/escape.hpp"
#include "common/fill_in.hpp"
#include "core/bundle_info.hpp"
#include "generate/folder.hpp"
#include "generate/libtorch.hpp"
#include "generate/names.hpp"
#include "generate/reference.hpp"
#include "graph/load.hpp"

namespace strata::generate {
namespace fs = std::filesystem;
namespace {

std::string described(const graph::Graph& graph, const char* what, const std::vector<graph::Named>& list) {
  std::vector<std::string> all;
  for (const auto& element : list)
    all.push_back(fmt::format("{} {} {}", escape::markdown_code(element.name), name_of(graph.value(element.value).type),
                              brackets(graph.value(element.value).shape)));
  return fmt::format("{}: {}.\n", what, fmt::join(all, ", "));
}

}  // namespace

Result<std::size_t> libtorch_into(const fs::path& folder, const fs::path& bundle, const fs::path& root, int threads) {
  const auto graph = STRATA_TRY(graph::load(bundle));
  const auto question = STRATA_TRY(core::case_in(bundle));
  const auto source = STRATA_TRY(libtorch_source(graph, question.id()));
  STRATA_TRY(write_text(folder / "network.cpp", source));
  const std::map<std::string, std::string> values{
      {"threads", std::to_string(threads)},
      {"name", escape::markdown(question.model)},
      {"case", escape::markdown_code(question.id())},
      {"inputs", described(graph, "Inputs", graph.inputs) + described(graph, "Outputs", graph.outputs)}};
  for (const auto* file :
       {"runtime/libtorch/aten_network.hpp", "runtime/libtorch/main.cpp", "runtime/libtorch/CMakeLists.txt",
        "runtime/libtorch/README.md", "runtime/kit/safetensors_header.hpp", "runtime/serve/safetensors.hpp",
        "runtime/serve/fields.hpp", "runtime/template/printable.hpp", "runtime/template/program_folder.hpp",
        "runtime/serve/torch_tensors.hpp", "runtime/serve/deploy.cmake", "cmake/StrataTorch.cmake"}) {
    const auto text = STRATA_TRY(read_text(root / file));
    const auto type = fs::path(file).extension();
    STRATA_TRY(
        write_text(folder / fs::path(file).filename(), type == ".md" || type == ".txt" ? fill_in(text, values) : text));
  }
  for (const auto& done : {copy_constants(bundle, folder), copy_weights(bundle, folder),
                           write_reference(folder / "reference.safetensors", graph, bundle, "fp32")})
    if (!done) return tl::unexpected(done.error());
  return graph.nodes.size();
}

}  // namespace strata::generate
