// SPDX-License-Identifier: Apache-2.0
#include "report/access.hpp"

#include <algorithm>

namespace strata::report {

std::string level_name(const Json& row) {
  return participant_of(row).name();
}

core::ParticipantId participant_of(const Json& row) {
  return {text(row, "level"), text(row, "variant"), text(row, "environment")};
}

bool is_measured(const Json& row) {
  return text(row, "state") == "measured";
}

bool is_training(const Json& one_case) {
  return text(one_case, "case.mode") == "train";
}

std::vector<const Json*> sorted_rows(const Json& one_case) {
  std::vector<const Json*> rows;
  for (const auto& row : list(one_case, "rows")) rows.push_back(&row);
  const auto key = [](const Json* row) {
    return std::tuple(flag(*row, "harness"), flag(*row, "peer"), number(*row, "rank").value_or(99),
                      text(*row, "level"));
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const Json* a, const Json* b) { return key(a) < key(b); });
  return rows;
}

const Json* reference_row(const Json& one_case) {
  const auto name = text(one_case, "reference_level");
  const Json* by_name = nullptr;
  for (const auto& row : list(one_case, "rows")) {
    if (flag(row, "reference")) return &row;
    if (!by_name && level_name(row) == name) by_name = &row;
  }
  return by_name;
}

}  // namespace strata::report
