// SPDX-License-Identifier: Apache-2.0
// What a program takes and gives: names, types and shapes, and the one check of tensors and files against them, which
// comes before anything reads their bytes. Errors are std::runtime_error: what it is, what was given, what is taken.
#pragma once

#include <algorithm>
#include <filesystem>
#include <set>

#include "safetensors.hpp"

// How long a dimension may be; a number alone allows nothing else.
struct Extent {
  Extent(std::int64_t only) : least(only), most(only) {}  // implicit: a shape reads {4, 3, 32, 32}
  Extent(std::int64_t low, std::int64_t high) : least(low), most(high) {}
  std::int64_t least, most;
};

struct Field {
  std::string name, dtype;  // dtype as safetensors has it: F32, I64, ...
  std::vector<Extent> shape;
};
using Fields = std::vector<Field>;

// "F32 [1..32,3,32,32]"
inline std::string described(const Field& field) {
  std::string text;
  for (const auto& extent : field.shape)
    text += (text.empty() ? "" : ",") + std::to_string(extent.least) +
            (extent.most == extent.least ? "" : ".." + std::to_string(extent.most));
  return field.dtype + " [" + text + "]";
}

inline std::string described(const std::string& dtype, const std::vector<std::int64_t>& shape) {
  return described(Field{"", dtype, {shape.begin(), shape.end()}});
}

inline bool fits(const std::string& dtype, const std::vector<std::int64_t>& shape, const Field& field) {
  if (dtype != field.dtype || shape.size() != field.shape.size()) return false;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i] < field.shape[i].least || shape[i] > field.shape[i].most) return false;
  return true;
}

// `what`: "input", "weight"; `does`: "takes", "gives".
inline void check_tensor(const std::string& what, const std::string& name, const RawTensor& tensor, const Field& field,
                         const std::string& does = "takes") {
  if (!fits(tensor.dtype, tensor.shape, field))
    throw std::runtime_error(what + " " + name + " is " + described(tensor.dtype, tensor.shape) + "; this artefact " +
                             does + " " + described(field));
}

// Errors for the first tensor that is none of `known`.
inline void refuse_others(const RawTensors& tensors, const std::set<std::string>& known, const std::string& holder,
                          const std::string& what) {
  for (const auto& [name, tensor] : tensors)
    if (known.count(name) == 0)
      throw std::runtime_error(holder + " '" + name + "' (" + described(tensor.dtype, tensor.shape) +
                               "), which is no " + what + " of this artefact");
}

// The tensors <entry>/<input> of entries 0, 1, ... of a file, and no others. Returns how many entries there are.
inline int check_inputs(const RawTensors& tensors, const Fields& inputs) {
  int entries = 1;
  while (!inputs.empty() && tensors.count(std::to_string(entries) + "/" + inputs.front().name) > 0) ++entries;
  std::set<std::string> known;
  for (int entry = 0; entry < entries; ++entry)
    for (const auto& field : inputs) {
      const auto name = std::to_string(entry) + "/" + field.name;
      const auto it = tensors.find(name);
      if (it == tensors.end()) throw std::runtime_error("the inputs lack '" + name + "', which is " + described(field));
      check_tensor("input", entry == 0 ? field.name : name, it->second, field);
      known.insert(name);
    }
  refuse_others(tensors, known, "the inputs hold", "input");
  return entries;
}

// Exactly these weights.
inline void check_weights(const RawTensors& tensors, const Fields& weights, const std::string& file) {
  std::set<std::string> known;
  for (const auto& field : weights) {
    const auto it = tensors.find(field.name);
    if (it == tensors.end())
      throw std::runtime_error(file + " lacks the weight '" + field.name + "', which is " + described(field));
    check_tensor("weight", field.name + " of " + file, it->second, field);
    known.insert(field.name);
  }
  refuse_others(tensors, known, file + " holds", "weight");
}

// What a network gave, in the order of `outputs`.
inline void check_outputs(const std::vector<RawTensor>& results, const Fields& outputs) {
  if (results.size() != outputs.size())
    throw std::runtime_error("the network gave " + std::to_string(results.size()) + " outputs; this artefact gives " +
                             std::to_string(outputs.size()));
  for (std::size_t i = 0; i < results.size(); ++i)
    check_tensor("output", outputs[i].name, results[i], outputs[i], "gives");
}

// A file of the artefact and its size: one that was cut short is not opened.
struct ArtefactFile {
  std::string name;
  std::uintmax_t bytes;
};

inline void check_files(const std::string& folder, const std::vector<ArtefactFile>& files) {
  for (const auto& file : files) {
    const auto path = folder + "/" + file.name;
    std::error_code error;
    const auto bytes = std::filesystem::file_size(path, error);
    if (error) throw std::runtime_error(path + " cannot be read: " + error.message());
    if (bytes != file.bytes)
      throw std::runtime_error(path + " has " + std::to_string(bytes) + " bytes; this artefact's has " +
                               std::to_string(file.bytes) + ": not all of it is there, or it is another one");
  }
}
