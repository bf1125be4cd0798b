// SPDX-License-Identifier: Apache-2.0
// What a program needs to run a network at this level: standalone NETWORK WEIGHTS.safetensors THREADS
// INPUTS.safetensors. Inputs are named <entry>/<input>, entries from 0 on. "Lines of code to maintain" counts it
// (docs/measuring.md), and a test builds and runs it.
#include "network.hpp"
#include "torch_tensors.hpp"

int main(int argc, char** argv) try {
  if (argc != 5) throw std::runtime_error("usage: standalone NETWORK WEIGHTS.safetensors THREADS INPUTS.safetensors");
  set_up(std::stoi(argv[3]));
  const c10::InferenceMode guard;
  const auto network = make_network(argv[1]);
  const auto weights = read_safetensors(argv[2]);
  for (const auto& parameter : network->named_parameters())
    parameter.value().copy_(to_torch(weights.at(parameter.key())));
  for (const auto& buffer : network->named_buffers()) buffer.value().copy_(to_torch(weights.at(buffer.key())));

  Taps none(false);
  for (const auto& [name, input] : read_safetensors(argv[4])) {
    const auto result = network->forward(to_torch(input), none).flatten();
    std::cout << name.substr(0, name.find('/')) << ' ' << result.slice(0, 0, 8) << '\n';
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << "error: " << printable(error.what()) << '\n';
  return 1;
}
