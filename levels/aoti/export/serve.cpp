// SPDX-License-Identifier: Apache-2.0
// Serves the network: serve FOLDER INPUTS.safetensors [OUTPUTS.safetensors]. FOLDER holds package.pt2 and
// weights.safetensors.
#include "serve.hpp"

#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include "torch_tensors.hpp"

Network load(const std::string& folder) {
  set_up(kThreads);
  const at::Device device(kDevice);
  const auto network = std::make_shared<torch::inductor::AOTIModelPackageLoader>(folder + "/package.pt2");
  const auto file = folder + "/weights.safetensors";
  const auto stored = read_safetensors(file);
  check_weights(stored, kWeights, file);
  std::unordered_map<std::string, at::Tensor> weights;  // the package may have been compiled with other ones in it
  for (const auto& name : network->get_constant_fqns())
    if (const auto it = stored.find(name); it != stored.end()) weights.emplace(name, to_torch(it->second).to(device));
  network->load_constants(weights, false, false);
  return [=](const RawTensors& inputs, int entry) {
    std::vector<at::Tensor> arguments;
    for (const auto& field : kInputs) arguments.push_back(to_torch(input_of(inputs, entry, field.name)).to(device));
    std::vector<RawTensor> results;
    for (const auto& tensor : network->run(arguments)) results.push_back(from_torch(tensor));
    return results;
  };
}

int main(int argc, char** argv) {
  const c10::InferenceMode guard;
  return serve(argc, argv, load);
}
