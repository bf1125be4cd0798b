// SPDX-License-Identifier: Apache-2.0
// A network as calls of ATen, operation by operation. Equal for all networks; network.cpp is written for one.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <vector>

// Uninitialised until values are copied in; `frozen`: a parameter that is not trained.
struct NamedTensor {
  const char* name;  // PyTorch's
  at::Tensor* tensor;
  bool frozen = false;
};

// An input or output.
struct Port {
  const char* name;
  at::ScalarType type;
  std::vector<std::int64_t> shape;
};

struct AtenNetwork {
  virtual ~AtenNetwork() = default;
  // `inputs` are of the types and shapes of the member's. Results in the order of `outputs`. Nothing is kept: callers
  // may share it, unless it trains.
  virtual std::vector<at::Tensor> forward(const std::vector<at::Tensor>& inputs) = 0;

  std::vector<NamedTensor> parameters, buffers, constants;  // `constants`: what is no weight
  std::vector<Port> inputs, outputs;
  bool training = false, dropout = true;  // for a network of mode train: batch statistics; dropout as given, or off
};

// The caller's to delete.
extern "C" AtenNetwork* make_generated_network();

namespace at::_ops {}
namespace op = at::_ops;

// A list of numbers, as whichever of ATen's types for one an operation takes.
template <std::size_t count>
struct Ints {
  std::array<std::int64_t, count> values;
  operator at::IntArrayRef() const { return {values.data(), count}; }
  operator c10::SymIntArrayRef() const { return c10::fromIntArrayRefSlow({values.data(), count}); }
};
template <class... Number>
Ints(Number...) -> Ints<sizeof...(Number)>;
