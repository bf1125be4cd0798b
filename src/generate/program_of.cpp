// SPDX-License-Identifier: Apache-2.0
#include "generate/program_of.hpp"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "compiler/compile.hpp"
#include "generate/graph_of.hpp"

namespace strata::generate {
namespace {

Result<nlohmann::json> case_of(const std::filesystem::path& bundle) {
  std::ifstream in(bundle / "bundle.json");
  const auto info = nlohmann::json::parse(in, nullptr, false);
  if (!info.is_object() || !info.contains("case") || !info["case"].is_object())
    return fail(fmt::format("{} says nothing of a case", (bundle / "bundle.json").string()),
                "remove the bundle's folder; it is made again");
  return info["case"];
}

Result<graph::Loss> loss_of(const std::filesystem::path& bundle) {
  const auto wanted = case_of(bundle);
  if (!wanted) return tl::unexpected(wanted.error());
  const auto& given = wanted->contains("loss") ? (*wanted)["loss"] : nlohmann::json();
  return graph::loss_named(given.is_string() ? given.get<std::string>() : "cross_entropy");
}

Result<graph::TrainingGraph> differentiated(const graph::Graph& network, const std::filesystem::path& bundle) {
  const auto loss = loss_of(bundle);
  if (!loss) return tl::unexpected(loss.error());
  return graph::differentiate(network, *loss);
}

}  // namespace

Result<graph::TrainingGraph> training_of(const std::filesystem::path& bundle) {
  const auto graph = graph_of(bundle);
  if (!graph) return tl::unexpected(graph.error());
  return differentiated(*graph, bundle);
}

Result<compiler::Program> program_of(const std::filesystem::path& bundle, const compiler::Kernels& kernels,
                                     compiler::Target target, std::optional<compiler::MemoryBudget> budget) {
  auto graph = graph_of(bundle);
  if (!graph) return tl::unexpected(graph.error());
  const auto wanted = case_of(bundle);
  if (!wanted) return tl::unexpected(wanted.error());
  const auto type = type_of_maths(wanted->value("maths", "fp32"));
  const compiler::Options options{compiler::native_block(), "", kernels, target, budget, type};
  if (graph->mode == graph::Mode::infer) return compiler::compile(*std::move(graph), options);
  auto training = differentiated(*graph, bundle);
  if (!training) return tl::unexpected(training.error());
  return compiler::compile(*std::move(training), options);
}

graph::Type type_of_maths(std::string_view maths) {
  return maths == "bf16" || maths == "amp-bf16" ? graph::Type::bfloat16 : graph::Type::float32;
}

Result<compiler::Program> evaluation_program_of(const std::filesystem::path& bundle, compiler::Target target) {
  const auto graph = graph_of(bundle);
  if (!graph) return tl::unexpected(graph.error());
  return compiler::compile(graph::evaluation_of(*graph), {compiler::native_block(), "", {}, target});
}

}  // namespace strata::generate
