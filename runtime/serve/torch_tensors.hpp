// SPDX-License-Identifier: Apache-2.0
// Between safetensors and PyTorch's C++ tensors, and the settings under which the network was measured.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <utility>

#include "safetensors.hpp"

inline const std::vector<std::pair<std::string, at::ScalarType>>& dtypes() {
  static const std::vector<std::pair<std::string, at::ScalarType>> known{
      {"F64", at::kDouble}, {"F32", at::kFloat}, {"F16", at::kHalf}, {"BF16", at::kBFloat16}, {"I64", at::kLong},
      {"I32", at::kInt},    {"I16", at::kShort}, {"I8", at::kChar},  {"U8", at::kByte},       {"BOOL", at::kBool}};
  return known;
}

inline at::Tensor to_torch(const RawTensor& raw) {
  for (const auto& [name, type] : dtypes())
    if (name == raw.dtype) {
      at::Tensor tensor = at::empty(raw.shape, type);
      if (tensor.nbytes() != raw.bytes.size())
        throw std::runtime_error("a tensor's shape and its number of bytes do not fit");
      std::memcpy(tensor.data_ptr(), raw.bytes.data(), raw.bytes.size());
      return tensor;
    }
  throw std::runtime_error("PyTorch has no type for " + raw.dtype);
}

inline RawTensor from_torch(const at::Tensor& any) {
  const at::Tensor tensor = any.detach().to(at::kCPU).contiguous();
  for (const auto& [name, type] : dtypes())
    if (type == tensor.scalar_type())
      return {name, tensor.sizes().vec(),
              std::string(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes())};
  throw std::runtime_error(std::string("an output has the type ") + c10::toString(tensor.scalar_type()));
}

// Threads, and IEEE float32 everywhere: no TF32 in cuBLAS and cuDNN, no bfloat16 or TF32 inside oneDNN.
inline void set_up(int threads) {
  at::set_num_threads(threads);
  auto& context = at::globalContext();
  context.setFloat32Precision(at::Float32Backend::GENERIC, at::Float32Op::ALL, at::Float32Precision::IEEE);
  for (const auto backend : {at::Float32Backend::CUDA, at::Float32Backend::MKLDNN})
    for (const auto op : {at::Float32Op::CONV, at::Float32Op::RNN, at::Float32Op::MATMUL})
      context.setFloat32Precision(backend, op, at::Float32Precision::IEEE);
}
