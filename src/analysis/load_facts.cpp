// SPDX-License-Identifier: Apache-2.0
#include "analysis/load_facts.hpp"

#include <algorithm>

#include "common/outside.hpp"

namespace strata::analysis {
namespace {

std::optional<double> share_of(const store::Json& facts, const char* name) {
  const auto& share = outside::field(facts, name);
  return share.is_number() ? std::optional(std::clamp(share.get<double>(), 0.0, 1.0)) : std::nullopt;
}

}  // namespace

void add_restarts(LoadFacts& facts, const std::vector<probe::Load>& restarts) {
  probe::Load all;
  for (const auto& restart_load : restarts) {
    if (restart_load.seconds <= 0) continue;
    all.others += restart_load.others * restart_load.seconds;
    all.steal += restart_load.steal * restart_load.seconds;
    all.seconds += restart_load.seconds;
    facts.restarts.push_back(restart_load.taken());
  }
  if (all.seconds <= 0) return;
  facts.others = all.others / all.seconds;
  facts.steal = all.steal / all.seconds;
}

store::Json to_json(const std::vector<probe::Load>& loads) {
  auto all = store::Json::array();
  for (const auto& load : loads)
    all.push_back({{"others", load.others}, {"steal", load.steal}, {"seconds", load.seconds}});
  return all;
}

std::vector<probe::Load> loads_of(const store::Json& stored) {
  std::vector<probe::Load> loads;
  for (const auto& load : stored)
    if (const auto others = share_of(load, "others"))
      loads.push_back({*others, share_of(load, "steal").value_or(0), outside::number_or(load, "seconds")});
  return loads;
}

}  // namespace strata::analysis
