// SPDX-License-Identifier: Apache-2.0
// Runs the network on the stored input and compares with the stored reference: network --check [THREADS]; or on inputs
// of your own, <entry>/<input> with entries from 0 on: network INPUTS.safetensors OUTPUTS.safetensors [THREADS].
#include <chrono>
#include <cmath>
#include <memory>

#include "aten_network.hpp"
#include "torch_tensors.hpp"

namespace {

const std::string folder = NETWORK_FOLDER;

void copy_into(const std::vector<NamedTensor>& tensors, const RawTensors& weights, const RawTensors& constants) {
  for (const auto& one : tensors) {
    const auto* file = weights.count(one.name) > 0 ? &weights : &constants;
    const auto found = file->find(one.name);
    if (found == file->end()) throw std::runtime_error(std::string("the weights lack '") + one.name + "'");
    const auto given = to_torch(found->second);
    if (given.sizes() != one.tensor->sizes()) throw std::runtime_error(std::string(one.name) + " has another shape");
    *one.tensor = given;
  }
}

std::unique_ptr<AtenNetwork> load_network() {
  std::unique_ptr<AtenNetwork> network(make_generated_network());
  const auto weights = read_safetensors(folder + "/weights.safetensors");
  const bool has_constants = std::ifstream(folder + "/constants.safetensors").good();
  const auto constants = has_constants ? read_safetensors(folder + "/constants.safetensors") : RawTensors();
  for (const auto* list : {&network->parameters, &network->buffers, &network->constants})
    copy_into(*list, weights, constants);
  return network;
}

std::vector<at::Tensor> inputs_of(const AtenNetwork& network, const RawTensors& file, const std::string& entry) {
  std::vector<at::Tensor> inputs;
  for (const char* name : network.inputs) {
    const auto found = file.find(entry + "/" + name);
    if (found == file.end()) throw std::runtime_error("the inputs lack '" + entry + "/" + name + "'");
    inputs.push_back(to_torch(found->second));
  }
  return inputs;
}

int check(AtenNetwork& network) {
  const auto reference = read_safetensors(folder + "/reference.safetensors");
  const auto inputs = inputs_of(network, reference, "input");
  const auto results = network.forward(inputs);
  int wrong = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string name = network.outputs[i];
    const auto wanted = to_torch(reference.at("output/" + name));
    const double bound = to_torch(reference.at("bound/" + name)).item<double>();
    const double error = ((results[i].to(at::kDouble) - wanted).norm() / wanted.norm()).item<double>();
    wrong += error <= bound ? 0 : 1;
    std::cout << name << ": error " << error << " against the float64 reference, allowed " << bound << ": "
              << (error <= bound ? "equal" : "WRONG") << '\n';
  }
  double least = 1e300;
  for (int i = 0; i < 20; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    network.forward(inputs);
    least =
        std::min(least, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  std::cout << "least of 20 runs " << least << " ms with " << at::get_num_threads() << " threads\n";
  return wrong == 0 ? 0 : 1;
}

int run(AtenNetwork& network, const std::string& from, const std::string& to) {
  const auto file = read_safetensors(from);
  RawTensors outputs;
  for (int entry = 0; file.count(std::to_string(entry) + "/" + network.inputs.front()) > 0; ++entry) {
    const auto results = network.forward(inputs_of(network, file, std::to_string(entry)));
    for (std::size_t i = 0; i < results.size(); ++i)
      outputs[std::to_string(entry) + "/" + network.outputs[i]] = from_torch(results[i]);
  }
  print(outputs);
  write_safetensors(to, outputs);
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  const bool checks = argc > 1 && std::string(argv[1]) == "--check";
  const int words = checks ? 2 : 3;
  if (argc < words || argc > words + 1)
    throw std::runtime_error(
        "usage: network --check [THREADS], or network INPUTS.safetensors OUTPUTS.safetensors [THREADS]");
  set_up(argc > words ? std::stoi(argv[words]) : at::get_num_threads());
  const c10::InferenceMode guard;
  const auto network = load_network();
  return checks ? check(*network) : run(*network, argv[1], argv[2]);
} catch (const std::exception& error) {
  std::cerr << "error: " << error.what() << '\n';
  return 1;
}
