// SPDX-License-Identifier: Apache-2.0
#include "compiler/program.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace strata::compiler {

std::string_view name_of(Layout layout) {
  return std::array{"plain", "channels_last", "blocked"}[static_cast<std::size_t>(layout)];
}

std::string_view name_of(Kernel kernel) {
  return std::array{"library", "winograd", "direct"}[static_cast<std::size_t>(kernel)];
}

bool is_computed_with(graph::Type type) {
  return type == graph::Type::float32 || type == graph::Type::bfloat16;
}

bool has_layouts(const graph::Value& value) {
  return value.shape.size() == 4 && is_computed_with(value.type);
}

std::optional<std::int64_t> bytes_in(const graph::Value& value, Layout layout, std::int64_t block) {
  if (layout == Layout::plain) return value.bytes();
  if (!has_layouts(value)) return std::nullopt;
  if (layout == Layout::channels_last || value.elements() == 0) return value.bytes();
  const auto channels = value.shape[1];
  std::int64_t whole = 0, elements = 0, bytes = 0;
  if (__builtin_mul_overflow((channels - 1) / block + 1, block, &whole) ||
      __builtin_mul_overflow(value.elements() / channels, whole, &elements) ||
      __builtin_mul_overflow(elements, graph::bytes_of(value.type), &bytes))
    return std::nullopt;
  return bytes;
}

bool same_bytes(const graph::Value& value, Layout a, Layout b, std::int64_t block) {
  if (a == b || value.elements() == 0) return true;
  if (!has_layouts(value)) return false;
  const auto channels = value.shape[1], pixels = value.shape[2] * value.shape[3];
  if (a != Layout::blocked && b != Layout::blocked) return channels == 1 || pixels == 1;
  const auto other = a == Layout::blocked ? b : a;
  if (channels % block != 0) return false;
  return pixels == 1 || (other == Layout::channels_last && channels == block);
}

std::vector<int> operands_of(const Step& step) {
  std::vector<int> result;
  const auto add = [&](int value) {
    if (value >= 0 && std::find(result.begin(), result.end(), value) == result.end()) result.push_back(value);
  };
  for (const auto& argument : step.node.args)
    for (const int value : argument.values) add(value);
  for (const auto& post : step.posts) add(post.value);
  return result;
}

std::string where(const Step& step) {
  if (!step.node.op.starts_with("strata.")) return step.node.where();
  return fmt::format(
      "step '{}' ({}), made for {}", step.node.name, step.node.operation(),
      step.graph_nodes.empty() ? "the program's outputs" : fmt::format("{}", fmt::join(step.graph_nodes, ", ")));
}

}  // namespace strata::compiler
