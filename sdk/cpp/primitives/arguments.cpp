// SPDX-License-Identifier: Apache-2.0
#include "primitives/arguments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace strata::primitives {

std::int64_t product(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

bool Arguments::has(std::string_view argument) const {
  return node_.find(argument) != nullptr && !node_.is_null(argument);
}
bool Arguments::is_tensor(std::string_view argument) const {
  return has(argument) && node_.is_tensor(argument);
}
bool Arguments::gives_integers() const {
  return graph_.value(node_.outputs.at(0)).type == graph::Type::int64;
}

std::vector<bool> Arguments::flags(std::string_view argument) const {
  const auto* found = node_.find(argument);
  if (found == nullptr || !found->plain.is_array())
    throw Unsupported(fmt::format("'{}' is no list of flags", argument));
  return found->plain.get<std::vector<bool>>();
}

std::string Arguments::text(std::string_view argument) const {
  const auto* found = node_.find(argument);
  return found != nullptr && found->plain.is_string() ? found->plain.get<std::string>() : std::string();
}

Dims Arguments::integers(std::string_view argument, std::size_t count) const {
  Dims all = node_.ints(argument);
  if (all.size() == 1) all.resize(count, all.front());
  if (all.size() != count)
    throw Unsupported(fmt::format("'{}' is [{}], {} numbers are needed", argument, fmt::join(all, ", "), count));
  return all;
}

std::size_t Arguments::dimension(std::string_view argument, std::size_t rank) const {
  const auto axis = node_.integer(argument);
  const auto counted = axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis;
  if (counted < 0 || counted >= static_cast<std::int64_t>(rank))
    throw Unsupported(fmt::format("'{}' is {}, the tensor has {} dimensions", argument, axis, rank));
  return static_cast<std::size_t>(counted);
}

std::vector<std::size_t> Arguments::reduced_dimensions(std::size_t rank) const {
  std::vector<std::size_t> all;
  if (has("dim"))
    for (const auto dim : integers("dim"))
      all.push_back(static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(rank) : dim));
  if (all.empty())
    for (std::size_t i = 0; i < rank; ++i) all.push_back(i);
  std::sort(all.begin(), all.end());
  return all;
}

Window Arguments::convolution_window(const Dims& weight) const {
  const auto rank = weight.size() - 2;
  Window window{.kernel = Dims(weight.begin() + 2, weight.end()),
                .stride = integers("stride", rank),
                .dilation = integers("dilation", rank),
                .exact = true};
  const auto name = text("padding");
  if (name.empty()) {
    window.before = window.after = integers("padding", rank);
    return window;
  }
  for (std::size_t i = 0; i < rank; ++i) {
    const auto whole = name == "same" ? window.dilation[i] * (window.kernel[i] - 1) : 0;
    window.before.push_back(whole / 2);
    window.after.push_back(whole - whole / 2);
  }
  return window;
}

Window Arguments::pooling_window(const Dims& in, const Dims& out, std::size_t rank) const {
  Window window;
  window.kernel = integers("kernel_size", rank);
  window.stride = has("stride") && !integers("stride").empty() ? integers("stride", rank) : window.kernel;
  window.dilation = has("dilation") ? integers("dilation", rank) : Dims(rank, 1);
  window.before = integers("padding", rank);
  for (std::size_t i = 0; i < rank; ++i) {
    const auto at = in.size() - rank + i;
    const auto reach = (out[at] - 1) * window.stride[i] + (window.kernel[i] - 1) * window.dilation[i] + 1;
    const auto needed = reach - in[at] - window.before[i];
    window.exact = window.exact && needed <= window.before[i];
    window.after.push_back(std::max(needed, window.before[i]));
  }
  return window;
}

Dims Arguments::shape(std::size_t i) const {
  const auto& value = graph_.value(node_.outputs.at(i));
  if (value.type != graph::Type::float32)
    throw Unsupported(fmt::format("a result of type {}, calculations here are in float32", name_of(value.type)));
  return value.shape.empty() ? Dims{1} : value.shape;
}

std::vector<int> Arguments::values(std::string_view argument) const {
  const auto& all = node_.tensors(argument);
  if (std::any_of(all.begin(), all.end(), [](int value) { return value < 0; }))
    throw Unsupported(fmt::format("'{}' with a tensor left out", argument));
  return {all.begin(), all.end()};
}

int Arguments::only_value(std::string_view argument) const {
  if (node_.is_tensor(argument)) return node_.tensor(argument);
  const auto& list = node_.tensors(argument);
  if (list.size() != 1) throw Unsupported("a lookup by several lists, or not in the first dimension");
  return list.front();
}

}  // namespace strata::primitives
