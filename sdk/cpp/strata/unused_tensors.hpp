// SPDX-License-Identifier: Apache-2.0
// For training levels on the captured graph: tensors of a weight set that no step changes, and further names of those
// that steps change. Those of floating point belong to the state all the same, since the user's module has them;
// integers (rows of a lookup) do not, but for counts.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "strata/level.hpp"

namespace strata {

// How `state` names parameters and buffers (docs/protocol.md); the optimiser's are core::buffer_prefixes.
inline constexpr const char* weight_prefix = "weight:";
inline constexpr const char* count_prefix = "count:";  // of a buffer that is one int64
bool is_count(const TensorView& tensor);

class UnusedTensors {
 public:
  // `tied`: further names of parameters, as the bundle has them, which are no tensors of their own.
  explicit UnusedTensors(std::map<std::string, std::string> tied) : tied_(std::move(tied)) {}

  // All of the file but what is `known` or tied to that.
  void load(const SafeTensors& weights, const std::function<bool(const std::string&)>& known);
  void add_to(State& state) const;  // after the weights that steps change
  // Throws `failed` where the state lacks one, or has it in another type or shape.
  void check(const SafeTensors& state) const;
  void replace(const SafeTensors& state);  // after check()
  const std::map<std::string, HostTensor>& tensors() const { return tensors_; }

 private:
  std::map<std::string, std::string> tied_;
  std::map<std::string, HostTensor> tensors_;
};

}  // namespace strata
