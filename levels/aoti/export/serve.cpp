// SPDX-License-Identifier: Apache-2.0
// Serves the network: serve FOLDER INPUTS.safetensors [OUTPUTS.safetensors]. FOLDER holds package.pt2 and weights.safetensors;
// inputs are named <entry>/<input> with entries from 0 on, outputs <entry>/<output>.
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include "case.hpp"
#include "torch_tensors.hpp"

int main(int argc, char** argv) try {
  if (argc < 3 || argc > 4) throw std::runtime_error("usage: serve FOLDER INPUTS.safetensors [OUTPUTS.safetensors]");
  const std::string folder = argv[1];
  set_up(kThreads);
  const at::Device device(kDevice);
  const c10::InferenceMode guard;

  torch::inductor::AOTIModelPackageLoader network(folder + "/package.pt2");
  const auto stored = read_safetensors(folder + "/weights.safetensors");
  std::unordered_map<std::string, at::Tensor> weights;  // the package may have been compiled with other ones in it
  for (const auto& name : network.get_constant_fqns())
    if (const auto found = stored.find(name); found != stored.end()) weights.emplace(name, to_torch(found->second).to(device));
  network.load_constants(weights, false, false);

  const auto inputs = read_safetensors(argv[2]);
  RawTensors outputs;
  for (int entry = 0; entry == 0 || inputs.count(std::to_string(entry) + "/" + kInputs.front()) > 0; ++entry) {
    std::vector<at::Tensor> arguments;
    for (const auto& name : kInputs) arguments.push_back(to_torch(input_of(inputs, entry, name)).to(device));
    const auto results = network.run(arguments);
    for (std::size_t i = 0; i < kOutputs.size(); ++i) outputs[std::to_string(entry) + "/" + kOutputs[i]] = from_torch(results.at(i));
  }
  print(outputs);
  if (argc == 4) write_safetensors(argv[3], outputs);
  return 0;
} catch (const std::exception& error) {
  std::cerr << "error: " << error.what() << '\n';
  return 1;
}
