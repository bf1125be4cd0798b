// SPDX-License-Identifier: Apache-2.0
// What the programs `network` have in common: a model that is opened with its weights, and the stored reference.
#pragma once

#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>

#include "kit/safetensors.hpp"
#include "model.h"

#ifndef NETWORK_FOLDER
#define NETWORK_FOLDER "."
#endif

inline const std::string folder = NETWORK_FOLDER;

struct Close {
  void operator()(Model* model) const { model_destroy(model); }
};
using Network = std::unique_ptr<Model, Close>;

inline void need(bool done) {
  if (!done) throw std::runtime_error(model_error());
}

inline Network open_network(const std::string& weights, int threads) {
  Network network(model_create(threads));
  need(network != nullptr);
  const std::string constants = folder + "/constants.safetensors";
  const bool has_constants = std::ifstream(constants).good();
  need(model_load(network.get(), weights.c_str(), has_constants ? constants.c_str() : nullptr) == 0);
  return network;
}

inline const kit::FileTensor& tensor_of(const kit::SafeTensors& file, const std::string& name) {
  const auto* found = file.find(name);
  if (found == nullptr) throw std::runtime_error(file.path() + " lacks the tensor '" + name + "'");
  return *found;
}

// The input of the reference, which stays open with the file.
inline void set_stored_inputs(Model* network, const kit::SafeTensors& file) {
  for (int i = 0; i < model_input_count(); ++i) {
    const auto& input = tensor_of(file, std::string("input/") + model_input(i)->name);
    if (input.bytes != static_cast<std::size_t>(model_input(i)->elements) * sizeof(float))
      throw std::runtime_error(file.path() + ": the input does not fit the network");
    need(model_set_input(network, i, reinterpret_cast<const float*>(input.data)) == 0);
  }
}
