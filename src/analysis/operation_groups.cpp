// SPDX-License-Identifier: Apache-2.0
#include "analysis/operation_groups.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace strata::analysis {
namespace {

// The first whose text is in the name decides: "convolution_backward" is a convolution, "add_layer_norm" a norm.
constexpr std::array<std::pair<std::string_view, OperationKind>, 39> kWords{{{"update", OperationKind::update},
                                                                             {"_foreach", OperationKind::update},
                                                                             {"_fused_adam", OperationKind::update},
                                                                             {"_fused_sgd", OperationKind::update},
                                                                             {"conv", OperationKind::convolution},
                                                                             {"attention", OperationKind::product},
                                                                             {"linear", OperationKind::product},
                                                                             {"addmm", OperationKind::product},
                                                                             {"matmul", OperationKind::product},
                                                                             {"inner_product", OperationKind::product},
                                                                             {"einsum", OperationKind::product},
                                                                             {"bmm", OperationKind::product},
                                                                             {"mm", OperationKind::product},
                                                                             {"lstm", OperationKind::product},
                                                                             {"gru", OperationKind::product},
                                                                             {"rnn", OperationKind::product},
                                                                             {"norm", OperationKind::normalisation},
                                                                             {"softmax", OperationKind::normalisation},
                                                                             {"pool", OperationKind::pooling},
                                                                             {"resampling", OperationKind::pooling},
                                                                             {"upsample", OperationKind::pooling},
                                                                             {"mean", OperationKind::pooling},
                                                                             {"reduction", OperationKind::pooling},
                                                                             {"sum", OperationKind::pooling},
                                                                             {"reorder", OperationKind::move},
                                                                             {"copy", OperationKind::move},
                                                                             {"pack", OperationKind::move},
                                                                             {"cat", OperationKind::move},
                                                                             {"relu", OperationKind::element_wise},
                                                                             {"eltwise", OperationKind::element_wise},
                                                                             {"elements", OperationKind::element_wise},
                                                                             {"binary", OperationKind::element_wise},
                                                                             {"add", OperationKind::element_wise},
                                                                             {"sub", OperationKind::element_wise},
                                                                             {"mul", OperationKind::element_wise},
                                                                             {"div", OperationKind::element_wise},
                                                                             {"elu", OperationKind::element_wise},
                                                                             {"sigmoid", OperationKind::element_wise},
                                                                             {"tanh", OperationKind::element_wise}}};

// The layer with its first `depth` names.
std::string cut(const std::string& layer, std::size_t depth) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < depth; ++i) {
    at = layer.find('.', at);
    if (at == std::string::npos) return layer;
    ++at;
  }
  return layer.substr(0, at == 0 ? 0 : at - 1);
}

bool is_within(const std::string& layer, const std::string& part) {
  return layer == part || (layer.starts_with(part) && layer[part.size()] == '.');
}

}  // namespace

std::string_view name_of(OperationKind kind) {
  constexpr std::array<std::string_view, std::size(all_operation_kinds)> names{
      "convolutions", "products", "norms", "pooling and sums", "element-wise", "moves", "update", "other", "between"};
  return names[static_cast<std::size_t>(kind)];
}

OperationKind kind_of(const store::ProfiledOperation& operation) {
  if (operation.moves_only) return OperationKind::move;
  for (const auto& [word, kind] : kWords)
    if (operation.operation.find(word) != std::string::npos) return kind;
  return OperationKind::other;
}

std::map<OperationKind, double> ms_by_kind(const store::OperationProfile& profile) {
  std::map<OperationKind, double> sums;
  sums[OperationKind::between] = profile.after_ms;
  for (const auto& operation : profile.operations) {
    sums[kind_of(operation)] += operation.ms;
    sums[OperationKind::between] += operation.gap_ms;
  }
  return sums;
}

std::vector<std::string> parts_of(std::span<const store::OperationProfile* const> profiles, std::size_t most) {
  std::vector<std::string> layers;
  for (const auto* profile : profiles)
    for (const auto& operation : profile->operations)
      if (operation.layer && std::find(layers.begin(), layers.end(), *operation.layer) == layers.end())
        layers.push_back(*operation.layer);
  std::vector<std::string> parts;
  for (std::size_t depth = 1; depth < 20; ++depth) {
    std::vector<std::string> deeper;
    for (const auto& layer : layers)
      if (auto part = cut(layer, depth); std::find(deeper.begin(), deeper.end(), part) == deeper.end())
        deeper.push_back(std::move(part));
    if (!parts.empty() && (deeper.size() > most || deeper == parts)) break;
    parts = std::move(deeper);
  }
  return parts;
}

std::string part_of(const std::string& layer, std::span<const std::string> parts) {
  std::string longest;
  for (const auto& part : parts)
    if (is_within(layer, part) && part.size() > longest.size()) longest = part;
  return longest;
}

std::map<std::string, double> ms_by_part(const store::OperationProfile& profile, std::span<const std::string> parts) {
  std::map<std::string, double> sums;
  for (const auto& operation : profile.operations)
    if (operation.layer) sums[part_of(*operation.layer, parts)] += operation.ms;
  return sums;
}

std::vector<OperationGroup> groups_of(const store::OperationProfile& profile) {
  std::map<std::pair<std::string, std::string>, OperationGroup> groups;
  for (const auto& each : profile.operations) {
    auto& group = groups[{each.operation, each.kernel}];
    group.operation = each.operation;
    group.kernel = each.kernel;
    ++group.calls;
    group.ms += each.ms;
    if (each.ms < group.longest_ms) continue;
    group.longest_ms = each.ms;
    group.longest_layer = each.layer.value_or("");
  }
  std::vector<OperationGroup> sorted;
  for (auto& [key, group] : groups) sorted.push_back(std::move(group));
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.ms > b.ms; });
  return sorted;
}

}  // namespace strata::analysis
