// SPDX-License-Identifier: Apache-2.0
#include "plan/missing_support.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "generate/generate.hpp"
#include "graph/backward/rules.hpp"
#include "graph/expand.hpp"

namespace strata::plan {
namespace {

bool has_name(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

bool can_run(const level::Level& level, const graph::Node& node, bool training) {
  if (!has_name(level.operations, node.operation())) return false;
  // A result of whole numbers (a count) has no gradient; that it has no rule either is not told apart here.
  return !training || graph::find_backward(node.operation()) != nullptr;
}

// Its program is one that strata writes for this device.
bool is_generated(const level::Level& level, const std::string& device) {
  const auto target = level.generate.find(device);
  return target != level.generate.end() && target->second != "libtorch";
}

}  // namespace

std::vector<MissingSupport> missing_support(const graph::Graph& captured, const std::vector<level::Level>& levels,
                                            const std::string& device) {
  std::vector<MissingSupport> all;
  const auto graph = graph::expanded(captured).value_or(captured);  // as these levels do
  const bool training = graph.mode == graph::Mode::train;
  for (const auto& level : levels) {
    if (level.operations.empty() || has_name(level.operations, level::kAllOfAten) || !has_name(level.devices, device) ||
        !has_name(level.modes, std::string(graph::name_of(graph.mode))))
      continue;
    std::vector<const graph::Node*> nodes;
    for (const auto& node : graph.nodes)
      if (!can_run(level, node, training)) nodes.push_back(&node);
    const auto target = device == "cuda" ? compiler::Target::cuda : compiler::Target::cpu;
    const auto ports =
        is_generated(level, device) && !training ? generate::refused_ports(graph, target) : std::vector<std::string>{};
    if (nodes.empty() && ports.empty()) continue;
    MissingSupport entry{level.id, {}, graph::operations_with_places(nodes)};
    std::set<std::string> operations;
    for (const auto* node : nodes) operations.insert(node->operation());
    entry.operations.assign(operations.begin(), operations.end());
    if (!ports.empty())
      entry.words +=
          fmt::format("{}{}: {}", nodes.empty() ? "" : "; ", fmt::join(ports, ", "), generate::allowed_ports(target));
    all.push_back(std::move(entry));
  }
  return all;
}

}  // namespace strata::plan
