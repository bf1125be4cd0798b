// SPDX-License-Identifier: Apache-2.0
// Reads and writes safetensors files as tensors that own their bytes, and prints them. Errors are std::runtime_error
// and name the file.
#pragma once

#include <fstream>
#include <iostream>
#include <iterator>

#include "printable.hpp"
#include "safetensors_header.hpp"

struct RawTensor {
  std::string dtype;  // F64, F32, F16, BF16, I64, I32, I16, I8, U8, BOOL, ...
  std::vector<std::int64_t> shape;
  std::string bytes;  // contiguous
};
using RawTensors = std::map<std::string, RawTensor>;

inline RawTensors read_safetensors(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw std::runtime_error(file + " cannot be read");
  const std::string all{std::istreambuf_iterator<char>(stream), {}};
  RawTensors tensors;
  for (auto& [name, entry] : safetensors::read_header(all, file))
    tensors[name] = {entry.dtype, entry.shape, all.substr(entry.begin, entry.bytes)};
  return tensors;
}

inline void write_safetensors(const std::string& file, const RawTensors& tensors) {
  safetensors::HeaderWriter header;
  for (const auto& [name, tensor] : tensors) header.add(name, tensor.dtype, tensor.shape, tensor.bytes.size());
  std::ofstream stream(file, std::ios::binary);
  stream << header.all();
  for (const auto& [name, tensor] : tensors) stream << tensor.bytes;
  if (!stream.flush()) throw std::runtime_error(file + " cannot be written");
}

// Each tensor's name, type, shape and first numbers.
inline void print(const RawTensors& tensors) {
  for (const auto& [name, tensor] : tensors) {
    std::cout << printable(name) << " " << tensor.dtype << " [";
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) std::cout << (i ? ", " : "") << tensor.shape[i];
    std::cout << "]";
    const auto show = [&bytes = tensor.bytes](auto value) {
      for (std::size_t at = 0; at + sizeof value <= bytes.size() && at < 8 * sizeof value; at += sizeof value) {
        std::memcpy(&value, bytes.data() + at, sizeof value);
        std::cout << " " << value;
      }
    };
    if (tensor.dtype == "F32") show(float{});
    if (tensor.dtype == "F64") show(double{});
    if (tensor.dtype == "I32") show(std::int32_t{});
    if (tensor.dtype == "I64") show(std::int64_t{});
    std::cout << "\n";
  }
}
