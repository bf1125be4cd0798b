// SPDX-License-Identifier: Apache-2.0
// The program around a network: serve FOLDER INPUTS.safetensors [OUTPUTS.safetensors]. FOLDER holds the artefact;
// inputs are named <entry>/<input> with entries from 0 on, outputs <entry>/<output>. Files, inputs and results are
// checked here against case.hpp, in front of every level.
#pragma once

#include <functional>

#include "case.hpp"
#include "safetensors.hpp"

// Outputs in the order of kOutputs for the tensors <entry>/<input> of a file.
using Network = std::function<std::vector<RawTensor>(const RawTensors& inputs, int entry)>;

// The tensor `<entry>/<name>`, which check_inputs has seen.
inline const RawTensor& input_of(const RawTensors& tensors, int entry, const std::string& name) {
  const auto it = tensors.find(std::to_string(entry) + "/" + name);
  if (it == tensors.end()) throw std::runtime_error("the network takes '" + name + "', which case.hpp does not name");
  return it->second;
}

// main: `load` makes the network from its folder. Returns the exit code; errors go to standard error.
inline int serve(int argc, char** argv, const std::function<Network(const std::string& folder)>& load) try {
  if (argc < 3 || argc > 4) throw std::runtime_error("usage: serve FOLDER INPUTS.safetensors [OUTPUTS.safetensors]");
  check_files(argv[1], kFiles);
  const auto inputs = read_safetensors(argv[2]);
  const int entries = check_inputs(inputs, kInputs);
  const Network network = load(argv[1]);
  RawTensors outputs;
  for (int entry = 0; entry < entries; ++entry) {
    const auto results = network(inputs, entry);
    check_outputs(results, kOutputs);
    for (std::size_t i = 0; i < kOutputs.size(); ++i)
      outputs[std::to_string(entry) + "/" + kOutputs[i].name] = results[i];
  }
  print(outputs);
  if (argc == 4) write_safetensors(argv[3], outputs);
  return 0;
} catch (const std::exception& error) {
  std::cerr << "error: " << printable(error.what()) << '\n';
  return 1;
}
