// SPDX-License-Identifier: Apache-2.0
#include "report/slo.hpp"

#include <fmt/format.h>

#include "report/clients.hpp"
#include "report/format.hpp"
#include "stats/compare.hpp"

namespace strata::report {

std::string slo_sentence(const analysis::SloLevel& level, const std::string& quantile, double limit_ms) {
  const auto per_s = level.inputs_per_s.value_or(stats::nan);
  const auto how = fmt::format("batch {:.0f}, {}, {} inputs/s", level.batch, clients_name(level.clients, level.as),
                               per_s < 999.5 ? ratio(per_s) : count(per_s));
  const auto name = core::ParticipantId{level.level, level.variant, level.environment}.name();
  const auto& ms = level.quantile_ms;
  const double value = ms.value.value_or(stats::nan);
  if (level.verdict == "meets")
    return fmt::format("{}: {} at {} {} (at most {})", name, how, quantile, duration(value),
                       duration(ms.high.value_or(stats::nan)));
  const auto few = fmt::format("{} requests are too few to bound it, {} would do",
                               count(static_cast<double>(level.samples)), level.needed_samples);
  const auto range = ms.high ? fmt::format("{} to {}", ms.low ? duration(*ms.low) : "0", duration(*ms.high)) : few;
  if (level.verdict == "may_meet")
    return fmt::format("{} may meet it: {} at {} {} ({})", name, how, quantile, duration(value), range);
  return fmt::format("{} misses it by {}: {} is {} at its best ({})", name, duration(value - limit_ms), quantile,
                     duration(value), how);
}

std::string slo_title(const analysis::CaseResult& one_case) {
  const auto& slo = one_case.slo;
  return slo ? fmt::format("{} within {}", slo->quantile, duration(slo->limit_ms)) : "";
}

std::vector<std::string> slo_lines(const analysis::CaseResult& one_case) {
  std::vector<std::string> lines;
  if (!one_case.slo) return lines;
  if (!one_case.slo->note.empty()) lines.push_back(one_case.slo->note);
  for (const auto& level : one_case.slo->levels) lines.push_back(level.sentence);
  return lines;
}

}  // namespace strata::report
