// SPDX-License-Identifier: Apache-2.0
#include "report/environments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "common/lookup.hpp"
#include "report/format.hpp"

namespace strata::report {
using lookup::at, lookup::text;
namespace {

std::string one_against_another(const analysis::AcrossEnvironments& pair) {
  using analysis::RatioVerdict;
  const auto level = core::ParticipantId{pair.level, pair.variant}.name();
  const auto speedup = pair.ratio.value_or(analysis::Ratio());
  if (!speedup.value || !speedup.low || !speedup.high)
    return fmt::format("{} has no undisturbed round in both {} and {}", level, pair.to, pair.from);
  if (speedup.verdict == RatioVerdict::same && speedup.same_within_percent)
    return fmt::format("{} is as fast in {} as in {}, within {}", level, pair.to, pair.from,
                       percent(*speedup.same_within_percent));
  return fmt::format("{} is {} ({} to {}) times as fast in {} as in {}{}", level, ratio(*speedup.value),
                     ratio(*speedup.low), ratio(*speedup.high), pair.to, pair.from,
                     speedup.verdict == RatioVerdict::inconclusive ? ", which is inconclusive" : "");
}

}  // namespace

requests::Named named_beside(const store::Run& run, const store::Row& row) {
  const auto& settings = run.settings;
  requests::Named named{settings.kept.store, text(settings.request, "python")};
  for (const auto& environment : run.environments) {
    const auto name = text(environment, "name");
    if (!name.empty() && (row.environment.empty() || row.environment == name)) {
      named.python = text(environment, "python");
      break;
    }
  }
  return named;
}

std::string across_sentence(const analysis::CaseResult& one_case) {
  std::string out;
  for (const auto& pair : one_case.across_environments) out += (out.empty() ? "" : "; ") + one_against_another(pair);
  return out.empty() ? "" : out + ".";
}

std::vector<std::vector<std::string>> package_differences(const std::vector<nlohmann::json>& environments) {
  std::map<std::string, std::vector<std::string>> versions;
  std::size_t place = 0;
  for (const auto& environment : environments) {
    const auto& packages = at(environment, "packages");
    if (packages.is_object())
      for (const auto& [name, version] : packages.items()) {
        auto& of = versions[name];
        of.resize(environments.size());
        if (version.is_string()) of[place] = version.get<std::string>();
      }
    ++place;
  }
  std::vector<std::vector<std::string>> rows;
  for (auto& [name, of] : versions) {
    if (std::adjacent_find(of.begin(), of.end(), std::not_equal_to<>()) == of.end()) continue;
    rows.push_back({name});
    rows.back().insert(rows.back().end(), of.begin(), of.end());
  }
  return rows;
}

}  // namespace strata::report
