// SPDX-License-Identifier: Apache-2.0
// What a Model is, for the files behind its C interface.
#pragma once

#include <exception>
#include <iterator>
#include <string>
#include <vector>

#include "model.h"
#include "plan.hpp"

// a name is filled in
// clang-format off
namespace network = @namespace@;
// clang-format on

inline thread_local std::string model_failure;

// Runs `work`; what it throws becomes the thread's error, and `failed` the result.
template <class Result, class Work>
Result guarded(Result failed, const Work& work) {
  try {
    return work();
  } catch (const std::exception& thrown) {
    model_failure = thrown.what();
    return failed;
  }
}

inline ModelTensor tensor_of(const network::Port& port) {
  const auto elements = port.shape.elements();
  ModelTensor tensor{
      port.name, kit::name_of(port.type), port.shape.rank, {}, elements, elements * kit::bytes_of(port.type)};
  for (int i = 0; i < port.shape.rank; ++i) tensor.extents[i] = port.shape[i];
  return tensor;
}

template <std::size_t count>
std::vector<ModelTensor> tensors_of(const network::Port (&ports)[count]) {
  std::vector<ModelTensor> tensors;
  for (const auto& port : ports) tensors.push_back(tensor_of(port));
  return tensors;
}

inline const ModelTensor* tensor_at(const std::vector<ModelTensor>& tensors, int number) {
  return number >= 0 && number < static_cast<int>(tensors.size()) ? &tensors[static_cast<std::size_t>(number)]
                                                                  : nullptr;
}

template <std::size_t count>
std::vector<kit::Extent> bytes_of(const network::Port (&ports)[count]) {
  std::vector<kit::Extent> all;
  for (const auto& port : ports) all.push_back(tensor_of(port).bytes);
  return all;
}

struct Model {
  kit::Program program{network::arena_bytes, bytes_of(network::inputs), bytes_of(network::outputs)};
  int threads = 0;
  std::string profile;
};
