// SPDX-License-Identifier: Apache-2.0
#include "analysis/operation_layers.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <string_view>

#include "analysis/operation_groups.hpp"

namespace strata::analysis {
namespace {

constexpr std::size_t kMost = 5'000;

// What a library and PyTorch's modules call one thing: addmm is called where linear is not dispatched, convolution and
// mm by Inductor, _convolution by TorchScript.
std::string_view plain(const std::string& operation) {
  std::string_view name = operation;
  if (name.ends_with('_')) name.remove_suffix(1);
  if (name == "addmm" || name == "mm") return "linear";
  for (const auto* convolution : {"conv1d", "conv2d", "conv3d", "_convolution"})
    if (name == convolution) return "convolution";
  return name;
}

// Elements of each input that is a matrix or more, whatever their order: addmm has a bias in front, and batches may be
// rows.
std::vector<std::int64_t> sizes_of(const std::vector<std::vector<std::int64_t>>& shapes) {
  std::vector<std::int64_t> sizes;
  for (const auto& shape : shapes)
    if (shape.size() > 1)
      sizes.push_back(std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()));
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

struct Call {
  std::string_view name;
  std::vector<std::int64_t> sizes;  // empty: not known

  bool fits(const Call& other) const {
    return name == other.name && (sizes.empty() || other.sizes.empty() || sizes == other.sizes);
  }
};

std::vector<Call> calls_of(const auto& operations) {
  std::vector<Call> calls;
  for (const auto& each : operations) calls.push_back({plain(each.operation), sizes_of(each.shapes)});
  return calls;
}

}  // namespace

void assign_layers(store::OperationProfile& profile, const std::vector<GraphOperation>& graph) {
  auto& own = profile.operations;
  const bool knows = std::any_of(own.begin(), own.end(), [](const auto& each) { return each.layer.has_value(); });
  if (knows || own.size() > kMost || graph.size() > kMost) return;
  const auto calls = calls_of(own), known = calls_of(graph);
  // length[i][j]: of the longest common subsequence of what follows from i and j
  const std::size_t width = graph.size() + 1;
  std::vector<std::uint16_t> length((own.size() + 1) * width, 0);
  for (std::size_t i = own.size(); i-- > 0;)
    for (std::size_t j = graph.size(); j-- > 0;)
      length[i * width + j] = calls[i].fits(known[j])
                                  ? static_cast<std::uint16_t>(length[(i + 1) * width + j + 1] + 1)
                                  : std::max(length[(i + 1) * width + j], length[i * width + j + 1]);
  std::vector<bool> is_taken(graph.size());
  for (std::size_t i = 0, j = 0; i < own.size() && j < graph.size();)
    if (calls[i].fits(known[j])) {
      is_taken[j] = true;
      own[i++].layer = graph[j++].layer;
    } else if (length[(i + 1) * width + j] >= length[i * width + j + 1]) {
      ++i;
    } else {
      ++j;
    }
  for (std::size_t i = 0; i < own.size(); ++i)
    for (std::size_t j = 0; j < graph.size() && !own[i].layer && !calls[i].sizes.empty(); ++j)
      if (!is_taken[j] && !known[j].sizes.empty() && calls[i].fits(known[j])) {
        is_taken[j] = true;
        own[i].layer = graph[j].layer;
      }
}

void assign_work(store::OperationProfile& profile, const std::vector<GraphOperation>& graph) {
  struct Layer {
    std::vector<const GraphOperation*> known;
    std::vector<store::ProfiledOperation*> own;
  };
  std::map<std::string, Layer> layers;
  for (const auto& each : graph)
    if (each.flops > 0) layers[each.layer].known.push_back(&each);
  for (auto& each : profile.operations)
    if (each.layer && multiplies(kind_of(each))) layers[*each.layer].own.push_back(&each);
  for (auto& [name, layer] : layers) {
    const bool in_one = layer.own.size() == 1 && layer.own[0]->operation.find("attention") != std::string::npos;
    if (!in_one && layer.own.size() != layer.known.size()) continue;
    for (std::size_t i = 0; i < layer.known.size(); ++i) {
      auto& own = *layer.own[in_one ? 0 : i];
      own.flops = own.flops.value_or(0) + layer.known[i]->flops;
      if (layer.known[i]->bytes > 0 && (!in_one || layer.known.size() == 1)) own.bytes = layer.known[i]->bytes;
    }
  }
}

}  // namespace strata::analysis
