// SPDX-License-Identifier: Apache-2.0
#include "analysis/result.hpp"

#include <algorithm>
#include <array>
#include <tuple>

#include "analysis/estimate.hpp"
#include "common/lookup.hpp"

namespace strata::analysis {
namespace {

constexpr std::array kHeadlineVerdicts{"move", "stay", "undecided", "no_data", "not_reliable", "preliminary"};
constexpr std::array kEdgeKinds{"step", "peer", "differs"};

template <class Enum>
bool find_name(const auto& names, std::string_view name, Enum& value) {
  const auto it = std::find(names.begin(), names.end(), name);
  if (it != names.end()) value = static_cast<Enum>(it - names.begin());
  return it != names.end();
}

}  // namespace

const char* to_string(HeadlineVerdict verdict) {
  return kHeadlineVerdicts.at(static_cast<std::size_t>(verdict));
}
bool from_string(std::string_view name, HeadlineVerdict& verdict) {
  return find_name(kHeadlineVerdicts, name, verdict);
}

const char* to_string(EdgeKind kind) {
  return kEdgeKinds.at(static_cast<std::size_t>(kind));
}
bool from_string(std::string_view name, EdgeKind& kind) {
  return find_name(kEdgeKinds, name, kind);
}

bool CaseResult::is_training() const {
  return lookup::text(question, "mode") == "train";
}

std::vector<const RowResult*> CaseResult::sorted_rows() const {
  std::vector<const RowResult*> sorted;
  for (const auto& row : rows) sorted.push_back(&row);
  const auto order = [](const RowResult* row) { return std::tie(row->harness, row->peer, row->rank, row->level); };
  std::stable_sort(sorted.begin(), sorted.end(), [&](const auto* a, const auto* b) { return order(a) < order(b); });
  return sorted;
}

const RowResult* CaseResult::reference_row() const {
  const RowResult* by_name = nullptr;
  for (const auto& row : rows) {
    if (row.reference) return &row;
    if (!by_name && row.name() == reference_level) by_name = &row;
  }
  return by_name;
}

}  // namespace strata::analysis
