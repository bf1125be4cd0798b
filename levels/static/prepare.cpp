// SPDX-License-Identifier: Apache-2.0
// strata_generate --bundle DIR --cache DIR: the level's prepare command (docs/add_a_level.md). Compiles the captured
// graph to a static program (src/compiler), writes it as C++ (src/generate) and compiles that: <cache>/network.so. Of
// the variant `measured`, <cache>/kernels.json says what each kernel took at each step. strata_generate --operations:
// those that it can write, as JSON.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "compile_program.hpp"
#include "compiler/kernels.hpp"
#include "generate/generate.hpp"
#include "generate/operations.hpp"
#include "generate/program_of.hpp"
#include "times_of_kernels.hpp"

namespace {

namespace fs = std::filesystem;
using strata::Error;

void progress(const std::string& what) {
  fmt::print(stderr, "{}\n", what);
}

// What the variant says of kernels; empty: the rules decide.
strata::Result<strata::compiler::Kernels> kernels_of_variant(const fs::path& bundle, const fs::path& cache) {
  const char* given = std::getenv("STRATA_VARIANT");
  const std::string_view variant = given == nullptr || *given == '\0' ? "default" : given;
  if (variant == "default") return strata::compiler::Kernels{};
  if (variant != "measured")
    return strata::fail(fmt::format("static has no variant {}", variant), "it has: measured",
                        strata::Exit::environment);
  progress("timing kernels");
  const auto times = strata::static_program::times_of_kernels(bundle, cache / "timing");
  if (!times) return tl::unexpected(times.error());
  std::error_code error;
  fs::remove_all(cache / "timing", error);
  std::ofstream out(cache / "kernels.json");
  if (!(out << times->dump(1) << std::endl))
    return strata::fail(fmt::format("cannot write {}", (cache / "kernels.json").string()), "is there space?");
  return strata::compiler::fastest_kernels(*times);
}

strata::Result<void> prepare(const fs::path& bundle, const fs::path& cache) {
  const auto kernels = kernels_of_variant(bundle, cache);
  if (!kernels) return tl::unexpected(kernels.error());
  progress("compiling the graph");
  const auto program = strata::generate::program_of(bundle, *kernels);
  if (!program) return tl::unexpected(program.error());
  const auto folder = cache / "program";
  std::error_code error;
  fs::remove_all(folder, error);
  progress("writing the program");
  strata::generate::Options options;
  options.sources = STRATA_GENERATE_SOURCES;
  options.weights_and_reference = false;
  if (auto done = strata::generate::generate_into(folder, *program, bundle, options); !done) return done;
  progress("compiling the program");
  return strata::static_program::compile_program(folder, cache / "network.so");
}

int answer(const strata::Result<void>& done) {
  nlohmann::json told{{"ok", done.has_value()}};
  if (!done) {
    const auto& what = done.error().what;
    const bool unavailable = what.rfind("no C++ compiler", 0) == 0;
    told["code"] = unavailable                                      ? "unavailable"
                   : done.error().exit == strata::Exit::environment ? "unsupported"
                                                                    : "failed";
    told["what"] = what;
    told["hint"] = done.error().hint;
  }
  std::cout << told.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
  return done ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  if (count == 2 && std::string_view(words[1]) == "--operations") {
    std::cout << nlohmann::json(strata::generate::known_operations()).dump() << std::endl;
    return 0;
  }
  std::map<std::string, std::string> given;
  for (int i = 1; i + 1 < count; i += 2) given[words[i]] = words[i + 1];
  if (count != 5 || !given.contains("--bundle") || !given.contains("--cache"))
    return answer(strata::fail("--bundle DIR --cache DIR are needed", "the driver calls this program"));
  return answer(prepare(given["--bundle"], given["--cache"]));
}
