// SPDX-License-Identifier: Apache-2.0
// What the programs `network` have in common: a model that is opened with its weights, and tensors of files, whose
// types and shapes are checked before anything reads them.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "kit/safetensors.hpp"
#include "model.h"
#include "printable.hpp"
#include "program_folder.hpp"

inline const std::string folder = program_folder();

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

inline std::vector<long> shape_of(const ModelTensor& tensor) {
  return {tensor.extents, tensor.extents + tensor.rank};
}

// "F32 [4,3,32,32]"
inline std::string described(const std::string& type, const std::vector<long>& shape) {
  std::string text;
  for (const long extent : shape) text += (text.empty() ? "" : ",") + std::to_string(extent);
  return type + " [" + text + "]";
}

// The tensor of this name, which must be of this type and shape.
inline const kit::FileTensor& tensor_of(const kit::SafeTensors& file, const std::string& name, const std::string& type,
                                        const std::vector<long>& shape) {
  const auto* tensor = file.find(name);
  if (tensor == nullptr)
    throw std::runtime_error(file.path() + " lacks '" + name + "', which is " + described(type, shape));
  if (tensor->type != type || tensor->shape != shape)
    throw std::runtime_error(file.path() + ": '" + name + "' is " + described(tensor->type, tensor->shape) +
                             "; the network takes " + described(type, shape));
  return *tensor;
}

inline const kit::FileTensor& input_of(const kit::SafeTensors& file, const std::string& group, int number) {
  const ModelTensor& input = *model_input(number);
  return tensor_of(file, group + "/" + input.name, input.type, shape_of(input));
}

// What the reference says of a result: its float64 numbers and the error that is allowed.
struct Expected {
  const kit::FileTensor& values;
  double bound;
};
inline Expected expected(const kit::SafeTensors& reference, const std::string& name, const std::vector<long>& shape) {
  double bound = 0;
  std::memcpy(&bound, tensor_of(reference, "bound/" + name, "F64", {}).data, sizeof bound);
  return {tensor_of(reference, "output/" + name, "F64", shape), bound};
}

// Element i of a tensor as the network gives it; whole numbers beyond 2^53 rounded.
inline double number_at(const void* data, const std::string& type, std::size_t i) {
  if (type == "F32") return static_cast<double>(static_cast<const float*>(data)[i]);
  if (type == "I64") return static_cast<double>(static_cast<const std::int64_t*>(data)[i]);
  if (type == "I32") return static_cast<double>(static_cast<const std::int32_t*>(data)[i]);
  return static_cast<double>(static_cast<const std::uint8_t*>(data)[i]);
}

// ||got - wanted|| and ||wanted||, of as many float64 numbers as `wanted` has; not a number where a result is none.
struct Norms {
  double difference = 0, size = 0;
};
inline Norms norms_of(const void* got, const ModelTensor& about, const kit::FileTensor& wanted) {
  Norms squares;
  for (std::size_t i = 0; i < wanted.bytes / sizeof(double); ++i) {
    double value = 0;
    std::memcpy(&value, wanted.data + i * sizeof value, sizeof value);
    const double difference = number_at(got, about.type, i) - value;
    squares.difference += difference * difference;
    squares.size += value * value;
  }
  return {std::sqrt(squares.difference), std::sqrt(squares.size)};
}

// Inputs of a file, by the names <group>/<input>. The network reads them where they lie: the file must stay open.
class Inputs {
 public:
  Inputs(const kit::SafeTensors& file, const std::string& group) {
    for (int i = 0; i < model_input_count(); ++i) {
      const auto& input = input_of(file, group, i);
      places_.emplace_back(input.data);
      if (reinterpret_cast<std::uintptr_t>(input.data) % alignof(std::int64_t) == 0) continue;
      aligned_.emplace_back(input.bytes / sizeof(std::int64_t) + 1);
      std::memcpy(aligned_.back().data(), input.data, input.bytes);
      places_.back() = aligned_.back().data();
    }
  }
  void give_to(Model* network) const {
    for (int i = 0; i < model_input_count(); ++i)
      need(model_set_input(network, i, places_[static_cast<std::size_t>(i)]) == 0);
  }

 private:
  std::vector<const void*> places_;
  std::vector<std::vector<std::int64_t>> aligned_;
};
