// SPDX-License-Identifier: Apache-2.0
// The program around a network: serve FOLDER INPUTS.safetensors [OUTPUTS.safetensors]. FOLDER holds the artefact;
// inputs are named <entry>/<input> with entries from 0 on, outputs <entry>/<output>.
#pragma once

#include <functional>

#include "case.hpp"
#include "safetensors.hpp"

// Outputs in the order of kOutputs for the tensors <entry>/<input> of a file.
using Network = std::function<std::vector<RawTensor>(const RawTensors& inputs, int entry)>;

// main: `load` makes the network from its folder. Returns the exit code; errors go to standard error.
inline int serve(int argc, char** argv, const std::function<Network(const std::string& folder)>& load) try {
  if (argc < 3 || argc > 4) throw std::runtime_error("usage: serve FOLDER INPUTS.safetensors [OUTPUTS.safetensors]");
  const Network network = load(argv[1]);
  const auto inputs = read_safetensors(argv[2]);
  RawTensors outputs;
  for (int entry = 0; entry == 0 || inputs.count(std::to_string(entry) + "/" + kInputs.front()) > 0; ++entry) {
    const auto results = network(inputs, entry);
    for (std::size_t i = 0; i < kOutputs.size(); ++i)
      outputs[std::to_string(entry) + "/" + kOutputs[i]] = results.at(i);
  }
  print(outputs);
  if (argc == 4) write_safetensors(argv[3], outputs);
  return 0;
} catch (const std::exception& error) {
  std::cerr << "error: " << error.what() << '\n';
  return 1;
}
