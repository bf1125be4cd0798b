// SPDX-License-Identifier: Apache-2.0
// Writes a static program (src/compiler) as a folder of C++ that builds and runs with oneDNN alone, or with cuDNN and
// cuBLAS: no PyTorch, no Python, no strata. What lies in kit/ (and kit_cuda/) and template/ goes along as it is; stages
// and the memory plan are written.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "common/result.hpp"
#include "compiler/program.hpp"

namespace strata::generate {

struct Options {
  std::filesystem::path sources;      // strata's runtime/, with kit/ and template/
  bool weights_and_reference = true;  // false: code alone
  int threads = 0;                    // of a run that names none; 0: as OpenMP says where it runs
  bool steps_by_node = false;         // Program::step gets the names of the graph's nodes in place of the layers'
};

// Libraries that programs can call: "onednn" is this one, "libtorch" libtorch.hpp.
std::vector<std::string> targets();

// Inputs and outputs that no program can have, as "'ids' is int64 [1, 128]", and a phrase that says which it can.
std::vector<std::string> refused_ports(const graph::Graph& graph, compiler::Target target);
std::string allowed_ports(compiler::Target target);

// A file by its path in the folder.
using Files = std::map<std::string, std::string>;

// All files of text. `bundle`: the folder that the program was captured into (docs/bundle.md), in the precision of
// its case. Errors: operations that the target lacks, with their places; a file of strata's own that cannot be read.
Result<Files> generate(const compiler::Program& program, const std::filesystem::path& bundle, const Options& options);

// generate(), written into an empty or new folder, with weights, constants and reference.
Result<void> generate_into(const std::filesystem::path& folder, const compiler::Program& program,
                           const std::filesystem::path& bundle, const Options& options);

}  // namespace strata::generate
