// SPDX-License-Identifier: Apache-2.0
#include "compile_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "generate/compile_library.hpp"

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

}  // namespace

Result<void> compile_program(const fs::path& folder, const fs::path& library) {
  const auto unit = write_unit(folder);
  if (!unit) return tl::unexpected(unit.error());
  const std::string lib = STRATA_ONEDNN_LIB;
  return generate::compile_library(
      STRATA_COMPILER,
      {"-std=c++20", "-O1", "-fopenmp", "-fvisibility=hidden", "-fvisibility-inlines-hidden", "-I" + folder.string(),
       "-isystem", STRATA_ONEDNN_INCLUDE, unit->string(), STRATA_KIT_ARCHIVE, lib + "/libdnnl.so", "-Wl,-rpath," + lib,
       "-Wl,-Bsymbolic"},
      folder / "compile.log", library);
}

}  // namespace strata::static_program
