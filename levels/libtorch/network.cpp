// SPDX-License-Identifier: Apache-2.0
#include "network.hpp"

#include <algorithm>

void Taps::keep(const std::string& path, const at::Tensor& value) {
  const int call = ++calls_[path];
  std::string name = "tap:";
  name += path;
  if (call > 1) name.append("#").append(std::to_string(call));
  kept_[name] = value.clone();
}

std::vector<std::string> network_names() {
  return {"resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "mnist_convnet"};
}

std::shared_ptr<Network> make_network(const std::string& name) {
  const auto names = network_names();
  if (std::find(names.begin(), names.end(), name) == names.end()) return nullptr;
  auto network = name == "mnist_convnet" ? make_mnist_convnet() : make_resnet(name);
  network->eval();
  return network;
}

Wanted input_of(const std::string& name) {
  return name == "mnist_convnet" ? Wanted{1, 28} : Wanted{3, 0};
}
