// SPDX-License-Identifier: Apache-2.0
#include "level/skeleton.hpp"

#include <fmt/format.h>

#include <cctype>
#include <fstream>
#include <map>
#include <system_error>

#include "common/escape.hpp"
#include "common/fill_in.hpp"
#include "common/nearest.hpp"
#include "level/level.hpp"

namespace strata::level {
namespace {

namespace fs = std::filesystem;

// @ID@ is the level's id, @TYPE@ its class, @START@ its program.
const char* const python_json = R"text({
  "id": "@ID@", "title": "@ID@ (say what it is)", "rank": 50, "language": "python", "api": 2,
  "devices": ["cpu"], "modes": ["infer"], "precisions": ["fp32"],
  "start": ["{python}", "-m", "strata_sdk", "{level}"],
  "environment": true, "needs": ["numpy", "safetensors"],
  "default": "say what the default settings are, in one sentence"
}
)text";

const char* const python_source = R"text(# SPDX-License-Identifier: Apache-2.0
"""@ID@: say what runs the network here.

The SDK owns the protocol, the timed loop and the files; this file only runs the network. What else
a level can do (train, serve several clients, report) are further classes of strata_sdk to derive
from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from strata_sdk import Job, Level, UnsupportedError


class @TYPE@(Level):
    def supports(self, job: Job) -> None:
        """Raises UnsupportedError, naming the operation, when this level cannot run job.case."""
        raise UnsupportedError(
            "@ID@ runs no network yet",
            "write load(), load_weights(), set_input(), run() and outputs() in its level.py",
        )

    def load(self, job: Job) -> None:
        """Builds the network from job.about (bundle.json) or job.bundle / "model.pt2"; no weights
        yet."""

    def load_weights(self, weights: str) -> None:
        """Puts the tensors of job.weights_path(weights) in, by their PyTorch names."""

    def set_input(self, inputs: Any) -> None:
        """One entry of the ring, a tuple of arrays; host_input() may make something else of it
        once, before timing."""
        self.entry = inputs

    def run(self) -> None:
        """One forward pass."""

    def outputs(self) -> Sequence[Any]:
        """All outputs in host memory, in the order of job.output_names; not touched again."""
        return ()
)text";

const char* const cpp_json = R"text({
  "id": "@ID@", "title": "@ID@ (say what it is)", "rank": 50, "language": "c++", "api": 2,
  "devices": ["cpu"], "modes": ["infer"], "precisions": ["fp32"],
  "start": ["@START@"],
  "environment": false, "needs": [],
  "default": "say what the default settings are, in one sentence"
}
)text";

const char* const cpp_source = R"text(// SPDX-License-Identifier: Apache-2.0
// @ID@: say what runs the network here.
// The SDK owns main(), the protocol, the timed loop and the files. What else a level can do (train, serve several
// clients, report) are further classes of strata/level.hpp to derive from.
#include "strata/level.hpp"

namespace {

class @TYPE@ : public strata::Level {
 public:
  // Why this level cannot run the case, naming the operation; empty: it can.
  std::string supports(const strata::Case&) const override {
    return "@ID@ runs no network yet: write load, load_weights, run and outputs";
  }

  // Builds the network from bundle.json or the files in bundle.folder; no weights yet.
  void load(const strata::Case& run_case, const strata::Bundle&, const std::filesystem::path&) override {
    facts_.threads = run_case.threads;
  }

  // Puts the tensors in, by their PyTorch names: weights.find("conv1.weight").
  void load_weights(const std::string&, const strata::SafeTensors&) override {}

  strata::Facts facts() const override { return facts_; }
  void set_input(std::span<const strata::HostTensor> inputs) override { inputs_ = inputs; }
  void run() override {}

  // All outputs in host memory, in the bundle's order; strata/bundle.hpp has allocate() and writable().
  void outputs(std::vector<strata::HostTensor>& results) override { results.clear(); }

 private:
  strata::Facts facts_;
  std::span<const strata::HostTensor> inputs_;
};

}  // namespace

STRATA_LEVEL(@TYPE@)
)text";

const char* const cpp_inside = "strata_add_level(@ID@ level_@ID@.cpp)\n";

const char* const cpp_outside = R"text(# cmake -S . -B build -G Ninja -DSTRATA_ROOT=/path/to/strata && ninja -C build
cmake_minimum_required(VERSION 3.25)
project(level_@ID@ LANGUAGES CXX)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
add_subdirectory("${STRATA_ROOT}/sdk/cpp" sdk)
add_executable(level_@ID@ level_@ID@.cpp)
target_link_libraries(level_@ID@ PRIVATE strata_sdk)
)text";

const char* const readme = R"text(# @ID@

What runs the network here, and how this level differs from the one above it: `from` and `changes`
in level.json draw that edge in the ledger. Name everything that changes, or leave both fields out.

Defaults: threads, layout, precision, graph optimisations, and why they are fair.

@BUILD@Check it against the protocol: @CHECK@
)text";

// my_level -> MyLevel
std::string type_name(const std::string& id) {
  std::string out;
  bool upper = true;
  for (const char c : id) {
    if (c != '_') out += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = c == '_';
  }
  return out;
}

}  // namespace

Result<std::vector<fs::path>> write_skeleton(const Skeleton& skeleton) {
  if (!good_id(skeleton.id))
    return fail(
        fmt::format("\"{}\" is no id for a level; allowed are up to 40 of a-z, 0-9 and _, a letter first", skeleton.id),
        "", Exit::usage);
  if (skeleton.language != "c++" && skeleton.language != "python") {
    const auto meant = nearest(skeleton.language == "cpp" ? "c++" : skeleton.language, {"c++", "python"});
    return fail(fmt::format("no skeleton for the language \"{}\"; there are: c++, python", skeleton.language),
                meant ? fmt::format("did you mean {}?", *meant)
                      : "a level may be in any language: docs/add_a_level.md, and examples/perl_level",
                Exit::usage);
  }
  const fs::path folder = fs::absolute(skeleton.parent) / skeleton.id;
  std::error_code error;
  if (fs::exists(folder, error))
    return fail(fmt::format("{} exists; nothing was written", folder.string()),
                "choose another name, or remove it first", Exit::usage);
  const bool cpp = skeleton.language == "c++";
  const bool inside =
      fs::weakly_canonical(skeleton.parent, error) == fs::weakly_canonical(skeleton.root / "levels", error);
  const std::map<std::string, std::string> values = {
      {"ID", skeleton.id},
      {"TYPE", type_name(skeleton.id)},
      {"CHECK", escape::markdown_code("strata level check " + escape::shell_word(folder.string()))},
      {"START", fmt::format("{}/level_{}", inside ? "{build}" : "{level}/build", skeleton.id)},
      {"BUILD", !cpp ? ""
                : inside
                    ? "It is built with the other levels.\n\n"
                    : "Build it: `cmake -S . -B build -G Ninja -DSTRATA_ROOT=/path/to/strata && ninja -C build`\n\n"}};
  std::vector<std::pair<std::string, const char*>> files = {{"level.json", cpp ? cpp_json : python_json},
                                                            {"README.md", readme}};
  if (cpp) {
    files.emplace_back(fmt::format("level_{}.cpp", skeleton.id), cpp_source);
    files.emplace_back("CMakeLists.txt", inside ? cpp_inside : cpp_outside);
  } else {
    files.emplace_back("level.py", python_source);
  }
  fs::create_directories(folder, error);
  if (error)
    return fail(fmt::format("cannot make the folder {}: {}", folder.string(), error.message()),
                "choose another one with --into");
  std::vector<fs::path> written;
  for (const auto& [name, text] : files) {
    std::ofstream file(folder / name);
    file << fill_in(text, values);
    file.close();
    if (!file)
      return fail(fmt::format("cannot write {}", (folder / name).string()),
                  "check its permissions and the disk's space");
    written.push_back(folder / name);
  }
  return written;
}

}  // namespace strata::level
