// SPDX-License-Identifier: Apache-2.0
#include "report/environments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "report/format.hpp"

namespace strata::report {
namespace {

std::string one_against_another(const Json& pair) {
  const auto level = level_name(pair), from = text(pair, "from"), to = text(pair, "to");
  const auto value = number(pair, "ratio.value"), low = number(pair, "ratio.low"), high = number(pair, "ratio.high");
  const auto within = number(pair, "ratio.same_within_percent");
  const auto verdict = text(pair, "ratio.verdict");
  if (!value || !low || !high) return fmt::format("{} has no undisturbed round in both {} and {}", level, to, from);
  if (verdict == "same" && within)
    return fmt::format("{} is as fast in {} as in {}, within {}", level, to, from, percent(*within));
  return fmt::format("{} is {} ({} to {}) times as fast in {} as in {}{}", level, ratio(*value), ratio(*low),
                     ratio(*high), to, from, verdict == "inconclusive" ? ", which is inconclusive" : "");
}

}  // namespace

Json environment_json(const store::Row& row) {
  return row.environment.empty() ? Json() : Json(row.environment);
}

std::string torch_versions(const Json& environments) {
  std::string out;
  for (const auto& environment : environments) {
    const auto version = text(environment, "torch"), name = text(environment, "name");
    if (version.empty()) continue;
    out += (out.empty() ? "" : ", ") + version;
    if (environments.size() > 1 && !name.empty()) out += " in " + name;
  }
  return out;
}

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

Json across_environments(const analysis::CaseStatistics& numbers) {
  Json all = Json::array();
  std::map<std::string, std::size_t> first;  // of each level and variant
  const auto& rows = numbers.measured();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i]->environment.empty()) continue;
    const auto [place, is_first] = first.emplace(rows[i]->level_and_variant(), i);
    if (is_first) continue;
    all.push_back({{"level", rows[i]->level},
                   {"variant", rows[i]->variant},
                   {"from", rows[place->second]->environment},
                   {"to", rows[i]->environment},
                   {"ratio", numbers.ratio(place->second, i)}});
  }
  return all;
}

std::string across_sentence(const Json& one_case) {
  std::string out;
  for (const auto& pair : list(one_case, "across_environments"))
    out += (out.empty() ? "" : "; ") + one_against_another(pair);
  return out.empty() ? "" : out + ".";
}

std::vector<std::vector<std::string>> package_differences(const Json& environments) {
  std::map<std::string, std::vector<std::string>> versions;
  std::size_t place = 0;
  for (const auto& environment : environments) {
    const Json& packages = at(environment, "packages");
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
