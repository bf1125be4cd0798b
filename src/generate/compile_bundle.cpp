// SPDX-License-Identifier: Apache-2.0
#include "generate/compile_bundle.hpp"

#include "compiler/compile.hpp"
#include "core/bundle_info.hpp"
#include "graph/load.hpp"

namespace strata::generate {
namespace {

Result<graph::TrainingGraph> differentiated(const graph::Graph& network, const std::filesystem::path& bundle) {
  const auto question = STRATA_TRY(core::case_in(bundle));
  const auto recipe = question.recipe.value_or(core::Recipe());
  const auto loss = STRATA_TRY(graph::loss_of(network, recipe.loss));
  auto training = STRATA_TRY(graph::differentiate(network, loss));
  training.clip_norm = recipe.optimiser.clip_norm;
  return training;
}

}  // namespace

Result<graph::TrainingGraph> training_of(const std::filesystem::path& bundle) {
  const auto graph = STRATA_TRY(graph::load(bundle));
  return differentiated(graph, bundle);
}

Result<compiler::Program> compile_bundle(const std::filesystem::path& bundle, const compiler::Kernels& kernels,
                                         compiler::Target target, std::optional<compiler::MemoryBudget> budget) {
  auto graph = graph::load(bundle);
  if (!graph) return tl::unexpected(graph.error());
  const auto question = STRATA_TRY(core::case_in(bundle));
  const auto type = type_of(question.precision);
  const compiler::Options options{.block = compiler::native_block(),
                                  .stop_after = "",
                                  .kernels = kernels,
                                  .target = target,
                                  .budget = budget,
                                  .type = type};
  if (graph->mode == graph::Mode::infer) return compiler::compile(*std::move(graph), options);
  auto training = differentiated(*graph, bundle);
  if (!training) return tl::unexpected(training.error());
  return compiler::compile(*std::move(training), options);
}

graph::Type type_of(core::Precision precision) {
  return precision == core::Precision::bf16 || precision == core::Precision::amp_bf16 ? graph::Type::bfloat16
                                                                                      : graph::Type::float32;
}

Result<compiler::Program> compile_evaluation(const std::filesystem::path& bundle, compiler::Target target) {
  const auto graph = graph::load(bundle);
  if (!graph) return tl::unexpected(graph.error());
  return compiler::compile(graph::evaluation_of(*graph),
                           {.block = compiler::native_block(), .stop_after = "", .target = target});
}

}  // namespace strata::generate
