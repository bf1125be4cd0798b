// SPDX-License-Identifier: Apache-2.0
// Serves the network: serve FOLDER INPUTS.safetensors [OUTPUTS.safetensors]. FOLDER holds script.pt, with its weights.
#include "serve.hpp"

#include <torch/script.h>

#include "torch_tensors.hpp"

Network load(const std::string& folder) {
  set_up(kThreads);
  const at::Device device(kDevice);
  torch::jit::Module network = torch::jit::load(folder + "/script.pt", device);
  network.eval();
  network = torch::jit::freeze(network);
  return [=](const RawTensors& inputs, int entry) mutable {
    std::vector<c10::IValue> arguments;
    for (const auto& field : kInputs) arguments.emplace_back(to_torch(input_of(inputs, entry, field.name)).to(device));
    const c10::IValue outputs = network.forward(std::move(arguments));
    std::vector<RawTensor> results;
    for (const auto& tensor : outputs.toTupleRef().elements()) results.push_back(from_torch(tensor.toTensor()));
    return results;
  };
}

int main(int argc, char** argv) {
  const c10::InferenceMode guard;
  return serve(argc, argv, load);
}
