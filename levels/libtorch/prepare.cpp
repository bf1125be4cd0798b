// SPDX-License-Identifier: Apache-2.0
// strata_generate_libtorch --bundle DIR --cache DIR: the level's prepare command (docs/add_a_level.md). Writes a
// network that is not written by hand as calls of ATen (src/generate/libtorch.hpp) and compiles them:
// <cache>/network.so.
#include "strata/prepare.hpp"

#include <fmt/format.h>

#include <fstream>

#include "core/bundle_info.hpp"
#include "generate/compile_library.hpp"
#include "generate/libtorch.hpp"
#include "graph/load.hpp"
#include "names.hpp"

namespace {

namespace fs = std::filesystem;

strata::Result<void> prepare(const fs::path& bundle, const fs::path& cache, const std::string& /*variant*/) {
  const auto question = STRATA_TRY(strata::core::case_in(bundle));
  if (is_hand_written(question.model)) return {};
  if (question.open_batch) return strata::fail(one_batch_only(question.model), "", strata::Exit::environment);
  const auto graph = STRATA_TRY(strata::graph::load(bundle));
  strata::say_progress("writing the program");
  const auto text = STRATA_TRY(strata::generate::libtorch_source(graph, question.id()));
  const auto source = cache / "network.cpp";
  if (std::ofstream out(source); !(out << text << std::flush))
    return strata::fail(fmt::format("cannot write {}", source.string()), "is there space?");
  strata::say_progress("compiling the program");
  const auto torch = STRATA_TRY(strata::built_with("torch")), runtime = STRATA_TRY(strata::built_with("runtime"));
  return strata::generate::compile_library(
      STRATA_TRY(strata::built_with("compiler")),
      {"-std=c++20", "-O1", "-I" + runtime + "/libtorch", "-isystem", torch + "/include", source.string(),
       torch + "/lib/libtorch_cpu.so", torch + "/lib/libc10.so", "-Wl,-rpath," + torch + "/lib"},
      cache / "compile.log", cache / "network.so");
}

}  // namespace

int main(int count, char** words) {
  return strata::prepare_main(count, words, prepare);
}
