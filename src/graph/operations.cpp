// SPDX-License-Identifier: Apache-2.0
#include "graph/operations.hpp"

#include <map>

#include "graph/operations/rules.hpp"

namespace strata::graph {
namespace {

const std::map<std::string_view, Operation>& table() {
  static const auto all = [] {
    std::map<std::string_view, Operation> result;
    for (const auto family :
         {convolution_operations(), normalisation_operations(), activation_operations(), image_operations(),
          pooling_operations(), linear_operations(), einsum_operations(), attention_operations(),
          arithmetic_operations(), reduction_operations(), recurrent_operations(), view_operations(),
          shape_operations(), loss_operations(), backward_operations()})
      for (const auto& operation : family) result.emplace(operation.name, operation);
    return result;
  }();
  return all;
}

}  // namespace

const Value* Call::maybe_in(std::string_view arg) const {
  if (node_.find(arg) == nullptr) return nullptr;
  const auto index = node_.maybe_tensor(arg);
  return index ? &graph_.value(*index) : nullptr;
}

const Value& Call::self() const {
  return in(node_.find("self") == nullptr ? "input" : "self");
}

std::vector<const Value*> Call::all(std::string_view arg) const {
  std::vector<const Value*> result;
  for (const int index : node_.tensors(arg)) result.push_back(index < 0 ? nullptr : &graph_.value(index));
  return result;
}

const Operation* find_operation(std::string_view name) {
  const auto it = table().find(name);
  return it == table().end() ? nullptr : &it->second;
}

std::vector<std::string_view> known_operations() {
  std::vector<std::string_view> names;
  for (const auto& [name, operation] : table()) names.push_back(name);
  return names;
}

}  // namespace strata::graph
