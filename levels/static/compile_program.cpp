// SPDX-License-Identifier: Apache-2.0
#include "compile_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "generate/compile_library.hpp"
#include "strata/prepare.hpp"

namespace strata::static_program {
namespace fs = std::filesystem;
namespace {

// One file that includes all: headers are read once.
Result<fs::path> write_unit(const fs::path& folder) {
  std::vector<std::string> files{"model.cpp", "program.cpp"};
  if (fs::exists(folder / "training.cpp")) files.emplace_back("training.cpp");
  const auto fixed = static_cast<std::ptrdiff_t>(files.size());
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder / "stages", error))
    files.push_back("stages/" + entry.path().filename().string());
  std::sort(files.begin() + fixed, files.end());
  const auto path = folder / "all.cpp";
  std::ofstream out(path);
  for (const auto& file : files) out << fmt::format("#include \"{}\"\n", file);
  if (!out.flush())
    return fail(fmt::format("cannot write {}", path.string()), "is there space, and may you write there?");
  return path;
}

// What a program is linked with: the kit, compiled with the level, and the libraries that this calls.
Result<std::vector<std::string>> linked(compiler::Target target) {
  const auto listed = STRATA_TRY(built_with(target == compiler::Target::cuda ? "cuda_linked" : "cpu_linked"));
  std::vector<std::string> words;
  std::istringstream all(listed);
  for (std::string word; std::getline(all, word, '|');) {
    words.push_back(word);
    if (word.find(".so") != std::string::npos) words.push_back("-Wl,-rpath," + fs::path(word).parent_path().string());
  }
  return words;
}

Result<void> check_toolkit(compiler::Target target, const std::vector<std::string>& libraries) {
  if (target == compiler::Target::cpu) return {};
  if (const auto missing = STRATA_TRY(built_with("cuda_missing")); !missing.empty())
    return fail(fmt::format("no C++ compiler for CUDA, or a library of it: {}", missing),
                STRATA_TRY(built_with("cuda_advice")), Exit::environment);
  for (const auto& word : libraries)
    if (word.ends_with(".a") && !fs::exists(word))
      return fail(fmt::format("strata's kit for CUDA is not compiled: there is no {}", word),
                  "./strata compare ... --device cuda compiles it", Exit::environment);
  return {};
}

}  // namespace

Result<void> compile_program(const fs::path& folder, compiler::Target target, const fs::path& library) {
  const auto libraries = STRATA_TRY(linked(target));
  STRATA_TRY(check_toolkit(target, libraries));
  const auto unit = STRATA_TRY(write_unit(folder));
  std::vector<std::string> words{
      "-std=c++20",           "-O1",        "-fopenmp", "-fvisibility=hidden", "-fvisibility-inlines-hidden",
      "-I" + folder.string(), unit.string()};
  words.insert(words.end(), libraries.begin(), libraries.end());
  words.emplace_back("-Wl,-Bsymbolic");
  return generate::compile_library(STRATA_TRY(built_with("compiler")), words, folder / "compile.log", library);
}

}  // namespace strata::static_program
