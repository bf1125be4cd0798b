// SPDX-License-Identifier: Apache-2.0
// Operations of a profile, put together: by what they do, by the part of the network, by their name.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/operation_profile.hpp"

namespace strata::analysis {

// What an operation does, as far as its name says; `between` is the time between operations.
enum class OperationKind { convolution, product, normalisation, pooling, element_wise, move, update, other, between };
inline constexpr OperationKind all_operation_kinds[] = {
    OperationKind::convolution, OperationKind::product,      OperationKind::normalisation,
    OperationKind::pooling,     OperationKind::element_wise, OperationKind::move,
    OperationKind::update,      OperationKind::other,        OperationKind::between};
std::string_view name_of(OperationKind kind);
OperationKind kind_of(const store::ProfiledOperation& operation);

// Milliseconds of an iteration by kind; `between` is all that lies between operations, before the first and after the
// last.
std::map<OperationKind, double> ms_by_kind(const store::OperationProfile& profile);

// Layers in the order in which `profiles` first name them, cut to the longest paths of which there are at most `most`:
// "layer1.0.conv1" and "layer1.0.bn1" become "layer1.0".
std::vector<std::string> parts_of(std::span<const store::OperationProfile* const> profiles, std::size_t most);
// Which of the parts a layer belongs to; empty: none.
std::string part_of(const std::string& layer, std::span<const std::string> parts);
// Milliseconds of an iteration by part; those of no known layer are left out.
std::map<std::string, double> ms_by_part(const store::OperationProfile& profile, std::span<const std::string> parts);

// Calls of one name and kernel.
struct OperationGroup {
  std::string operation, kernel;
  int calls = 0;
  double ms = 0;
  std::string longest_layer;  // of the call that takes the longest; "" where it is not known
  double longest_ms = 0;
};
// The longest first.
std::vector<OperationGroup> groups_of(const store::OperationProfile& profile);

}  // namespace strata::analysis
