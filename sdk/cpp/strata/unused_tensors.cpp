// SPDX-License-Identifier: Apache-2.0
#include "strata/unused_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "strata/bundle.hpp"

namespace strata {

bool is_count(const TensorView& tensor) {
  return tensor.dtype == "I64" && tensor.shape.empty();
}

void UnusedTensors::load(const SafeTensors& weights, const std::function<bool(const std::string&)>& known) {
  tensors_.clear();
  const auto is_known = [&](const std::string& name) {
    const auto first = tied_.find(name);
    return known(name) || (first != tied_.end() && known(first->second));
  };
  for (const auto& name : weights.names())
    if (!is_known(name)) tensors_.emplace(name, copy_of(*weights.find(name)));
}

void UnusedTensors::add_to(State& state) const {
  for (const auto& [name, first] : tied_) {
    const auto same = std::find_if(state.begin(), state.end(),
                                   [&, &of = first](const auto& named) { return named.first == weight_prefix + of; });
    if (same == state.end()) continue;  // the steps know neither
    auto copy = copy_of(same->second.view);
    state.emplace_back(weight_prefix + name, std::move(copy));
  }
  for (const auto& [name, tensor] : tensors_) {
    if (is_floating(tensor.view.dtype)) state.emplace_back(weight_prefix + name, copy_of(tensor.view));
    if (is_count(tensor.view)) state.emplace_back(count_prefix + name, copy_of(tensor.view));
  }
}

void UnusedTensors::check(const SafeTensors& state) const {
  for (const auto& [name, tensor] : tensors_) {
    if (!is_floating(tensor.view.dtype)) continue;
    const auto* stored = state.find(weight_prefix + name);
    if (stored == nullptr || stored->dtype != tensor.view.dtype || stored->shape != tensor.view.shape)
      throw Failure("failed", fmt::format("{}: '{}{}' is missing, or of another type or shape", state.where(),
                                          weight_prefix, name));
  }
}

void UnusedTensors::replace(const SafeTensors& state) {
  for (auto& [name, tensor] : tensors_)
    if (is_floating(tensor.view.dtype))
      tensor = copy_of(*state.find(weight_prefix + name));
    else if (const auto* count = state.find(count_prefix + name); count != nullptr && is_count(tensor.view))
      tensor = copy_of(*count);
}

}  // namespace strata
