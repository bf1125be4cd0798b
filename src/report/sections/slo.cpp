// SPDX-License-Identifier: Apache-2.0
#include "report/slo.hpp"

#include "report/sections/sections.hpp"

namespace strata::report {

document::Section slo_section(const analysis::CaseResult& one_case) {
  const auto limit = slo_title(one_case);
  document::Section section{.id = "slo", .title = "SLO: what each level needs for " + limit};
  if (limit.empty()) return section;
  for (const auto& line : slo_lines(one_case)) section.items.push_back(document::Text{line});
  return section;
}

}  // namespace strata::report
