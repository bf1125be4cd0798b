// SPDX-License-Identifier: Apache-2.0
#include "analysis/operation_groups.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "common/extents.hpp"

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

// "1x64x56x56, 64x64x3x3".
std::string words(const std::vector<std::vector<std::int64_t>>& shapes) {
  std::vector<std::string> all;
  for (const auto& shape : shapes) all.push_back(extents(shape));
  return fmt::format("{}", fmt::join(all, ", "));
}

std::string shown(const std::string& layer) {
  return layer.empty() ? std::string(kTheNetworkItself) : layer;
}

std::string name_in(const store::ProfiledOperation& operation, GroupBy by, std::span<const std::string> parts) {
  switch (by) {
    case GroupBy::operation:
      return operation.operation;
    case GroupBy::shape:
    case GroupBy::call:
      return operation.shapes.empty() ? operation.operation
                                      : fmt::format("{} ({})", operation.operation, words(operation.shapes));
    case GroupBy::layer:
      return operation.layer ? shown(*operation.layer) : std::string(kNoKnownPart);
    case GroupBy::part:
      return operation.layer ? shown(part_of(*operation.layer, parts)) : std::string(kNoKnownPart);
    case GroupBy::kind:
      return std::string(name_of(kind_of(operation)));
  }
  return {};
}

std::optional<double> sum_of(std::optional<double> a, std::optional<double> b) {
  return a && b ? std::optional(*a + *b) : std::nullopt;
}

// What multiplies no matrices computes nothing that is counted.
std::optional<double> flops_of(const store::ProfiledOperation& operation) {
  return operation.flops || multiplies(kind_of(operation)) ? operation.flops : std::optional(0.0);
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

bool multiplies(OperationKind kind) {
  return kind == OperationKind::convolution || kind == OperationKind::product;
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

std::string_view name_of(GroupBy by) {
  constexpr std::array<std::string_view, std::size(all_group_bys)> names{"operation", "shape", "layer",
                                                                         "part",      "kind",  "call"};
  return names[static_cast<std::size_t>(by)];
}

std::vector<OperationGroup> groups_of(const store::OperationProfile& profile, GroupBy by) {
  const store::OperationProfile* const only[] = {&profile};
  const auto parts = by == GroupBy::part ? parts_of(only) : std::vector<std::string>();
  std::vector<OperationGroup> groups;
  std::map<std::pair<std::string, std::string>, std::size_t> places;
  for (const auto& each : profile.operations) {
    const auto name = name_in(each, by, parts);
    const bool by_kernel = by == GroupBy::operation || by == GroupBy::shape;
    const auto [found, is_new] = places.try_emplace({name, by_kernel ? each.kernel : ""}, groups.size());
    if (is_new || by == GroupBy::call) {
      found->second = groups.size();
      groups.push_back({.name = name, .kernel = each.kernel, .flops = 0, .bytes = 0});
    }
    auto& group = groups[found->second];
    if (group.kernel != each.kernel) group.kernel.clear();
    ++group.calls;
    group.ms += each.ms;
    group.gap_ms += each.gap_ms;
    group.flops = sum_of(group.flops, flops_of(each));
    group.bytes = sum_of(group.bytes, each.bytes);
    if (each.ms < group.longest_ms) continue;
    group.longest_ms = each.ms;
    group.longest_layer = each.layer ? shown(*each.layer) : "";
  }
  return groups;
}

std::optional<double> OperationGroup::gflops_per_s() const {
  return flops.value_or(0) > 0 && ms > 0 ? std::optional(*flops / ms * 1e-6) : std::nullopt;
}

std::optional<double> OperationGroup::gbytes_per_s() const {
  return bytes && ms > 0 ? std::optional(*bytes / ms * 1e-6) : std::nullopt;
}

}  // namespace strata::analysis
