// SPDX-License-Identifier: Apache-2.0
#include "analysis/operation_layers.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace strata::analysis {
namespace {

constexpr std::size_t kMost = 5'000;

std::string_view plain(const std::string& operation) {
  std::string_view name = operation;
  if (name.ends_with('_')) name.remove_suffix(1);
  return name == "addmm" ? "linear" : name;  // which PyTorch's C++ calls without the dispatcher
}

}  // namespace

void assign_layers(store::OperationProfile& profile, const std::vector<GraphOperation>& graph) {
  auto& own = profile.operations;
  const bool knows = std::any_of(own.begin(), own.end(), [](const auto& each) { return each.layer.has_value(); });
  if (knows || own.size() > kMost || graph.size() > kMost) return;
  // length[i][j]: of the longest common subsequence of what follows from i and j
  const std::size_t width = graph.size() + 1;
  std::vector<std::uint16_t> length((own.size() + 1) * width, 0);
  for (std::size_t i = own.size(); i-- > 0;)
    for (std::size_t j = graph.size(); j-- > 0;)
      length[i * width + j] = plain(own[i].operation) == plain(graph[j].operation)
                                  ? static_cast<std::uint16_t>(length[(i + 1) * width + j + 1] + 1)
                                  : std::max(length[(i + 1) * width + j], length[i * width + j + 1]);
  for (std::size_t i = 0, j = 0; i < own.size() && j < graph.size();)
    if (plain(own[i].operation) == plain(graph[j].operation))
      own[i++].layer = graph[j++].layer;
    else if (length[(i + 1) * width + j] >= length[i * width + j + 1])
      ++i;
    else
      ++j;
}

}  // namespace strata::analysis
