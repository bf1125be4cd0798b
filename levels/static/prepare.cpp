// SPDX-License-Identifier: Apache-2.0
// strata_generate --bundle DIR --cache DIR [--variant NAME]: the level's prepare command (docs/add_a_level.md).
// Compiles the captured graph to a static program (src/compiler), writes it as C++ (src/generate) and compiles that:
// <cache>/network.so, in mode train the training step, and <cache>/evaluation.so the forward pass in eval mode. Of the
// variant `measured`, <cache>/kernels.json says what each kernel took at each step. strata_generate --operations: those
// that it can write, as JSON.
#include "strata/prepare.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "compile_program.hpp"
#include "compiler/kernels.hpp"
#include "core/bundle_info.hpp"
#include "generate/compile_bundle.hpp"
#include "generate/generate.hpp"
#include "generate/operations.hpp"
#include "times_of_kernels.hpp"

namespace {

namespace fs = std::filesystem;

strata::compiler::Target target_of(const strata::core::Case& question) {
#ifdef STRATA_CUDA_IN_HOST_MEMORY  // of strata's own tests
  static_cast<void>(question);
  return strata::compiler::Target::cuda;
#else
  return question.device == strata::core::Device::cuda ? strata::compiler::Target::cuda : strata::compiler::Target::cpu;
#endif
}

// What the variant says of kernels; empty: the rules decide.
strata::Result<strata::compiler::Kernels> kernels_of_variant(const fs::path& bundle, const fs::path& cache,
                                                             const std::string& variant) {
  if (variant == "default") return strata::compiler::Kernels{};
  if (variant != "measured")
    return strata::fail(fmt::format("static has no variant {}", variant), "it has: measured",
                        strata::Exit::environment);
  strata::say_progress("timing kernels");
  const auto times = STRATA_TRY(strata::static_program::times_of_kernels(bundle, cache / "timing"));
  std::error_code error;
  fs::remove_all(cache / "timing", error);
  std::ofstream out(cache / "kernels.json");
  if (!(out << times.dump(1) << std::endl))
    return strata::fail(fmt::format("cannot write {}", (cache / "kernels.json").string()), "is there space?");
  return strata::compiler::fastest_kernels(times);
}

// Writes the program's code into `folder` and compiles it to `library`.
strata::Result<void> make(const strata::Result<strata::compiler::Program>& program, const fs::path& bundle,
                          const fs::path& folder, const fs::path& library) {
  if (!program) return tl::unexpected(program.error());
  std::error_code error;
  fs::remove_all(folder, error);
  strata::say_progress("writing the program");
  strata::generate::Options options;
  options.sources = STRATA_TRY(strata::built_with("runtime"));
  options.weights_and_reference = false;
  STRATA_TRY(strata::generate::generate_into(folder, *program, bundle, options));
  strata::say_progress("compiling the program");
  return strata::static_program::compile_program(folder, program->target, library);
}

strata::Result<void> prepare(const fs::path& bundle, const fs::path& cache, const std::string& variant) {
  const auto question = STRATA_TRY(strata::core::case_in(bundle));
  const auto target = target_of(question);
  const auto kernels = STRATA_TRY(kernels_of_variant(bundle, cache, variant));
  strata::say_progress("compiling the graph");
  const auto program = strata::generate::compile_bundle(bundle, kernels, target);
  STRATA_TRY(make(program, bundle, cache / "program", cache / "network.so"));
  if (program->graph.mode == strata::graph::Mode::infer) return {};
  strata::say_progress("compiling the graph in eval mode");
  return make(strata::generate::compile_evaluation(bundle, target), bundle, cache / "evaluation",
              cache / "evaluation.so");
}

}  // namespace

int main(int count, char** words) {
  if (count == 2 && std::string_view(words[1]) == "--operations") {
    std::cout << nlohmann::json(strata::generate::known_operations()).dump() << std::endl;
    return 0;
  }
  return strata::prepare_main(count, words, prepare);
}
