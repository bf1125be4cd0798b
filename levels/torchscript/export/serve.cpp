// SPDX-License-Identifier: Apache-2.0
// Serves the network: serve FOLDER INPUTS.safetensors [OUTPUTS.safetensors]. FOLDER holds script.pt, with its weights;
// inputs are named <entry>/<input> with entries from 0 on, outputs <entry>/<output>.
#include <torch/script.h>

#include "case.hpp"
#include "torch_tensors.hpp"

int main(int argc, char** argv) try {
  if (argc < 3 || argc > 4) throw std::runtime_error("usage: serve FOLDER INPUTS.safetensors [OUTPUTS.safetensors]");
  set_up(kThreads);
  const at::Device device(kDevice);
  torch::jit::Module network = torch::jit::load(std::string(argv[1]) + "/script.pt", device);
  network.eval();
  network = torch::jit::freeze(network);
  const c10::InferenceMode guard;

  const auto inputs = read_safetensors(argv[2]);
  RawTensors outputs;
  for (int entry = 0; entry == 0 || inputs.count(std::to_string(entry) + "/" + kInputs.front()) > 0; ++entry) {
    std::vector<c10::IValue> arguments;
    for (const auto& name : kInputs) arguments.emplace_back(to_torch(input_of(inputs, entry, name)).to(device));
    const c10::IValue results = network.forward(std::move(arguments));
    for (std::size_t i = 0; i < kOutputs.size(); ++i)
      outputs[std::to_string(entry) + "/" + kOutputs[i]] = from_torch(results.toTupleRef().elements().at(i).toTensor());
  }
  print(outputs);
  if (argc == 4) write_safetensors(argv[3], outputs);
  return 0;
} catch (const std::exception& error) {
  std::cerr << "error: " << error.what() << '\n';
  return 1;
}
