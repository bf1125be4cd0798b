// SPDX-License-Identifier: Apache-2.0
#include "analysis/load_facts.hpp"

#include <algorithm>
#include <limits>

#include "common/lookup.hpp"
#include "common/outside.hpp"
#include "stats/disturbed.hpp"

namespace strata::analysis {
namespace {

std::optional<double> share_of(const store::Json& facts, const char* name) {
  const auto& share = outside::field(facts, name);
  return share.is_number() ? std::optional(std::clamp(share.get<double>(), 0.0, 1.0)) : std::nullopt;
}

}  // namespace

double LoadFacts::taken() const {
  return during ? during->taken() : begin.value_or(std::numeric_limits<double>::quiet_NaN());
}

double LoadFacts::most() const {
  return std::max(begin.value_or(0), during ? during->others : 0);
}

bool LoadFacts::busy() const {
  return other_run || most() > stats::tolerated_load || taken() > stats::tolerated_load;
}

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
  facts.during = probe::Load{all.others / all.seconds, all.steal / all.seconds, all.seconds};
}

store::Json to_json(const LoadFacts& facts) {
  return {{"begin", facts.begin ? store::Json(*facts.begin) : store::Json()},
          {"others", facts.during ? store::Json(facts.during->others) : store::Json()},
          {"steal", facts.during ? store::Json(facts.during->steal) : store::Json()},
          {"restarts", facts.restarts},
          {"other_run", facts.other_run ? store::Json(*facts.other_run) : store::Json()}};
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

LoadFacts load_of(const store::Case& run_case) {
  LoadFacts facts;
  const auto& load = outside::field(run_case.trust, "load");
  facts.begin = share_of(load, "begin");
  if (const auto others = share_of(load, "others"))
    facts.during = probe::Load{*others, share_of(load, "steal").value_or(0), 0};
  for (const auto& one_share : lookup::list(load, "restarts"))
    if (one_share.is_number()) facts.restarts.push_back(one_share.get<double>());
  if (const auto& other = outside::field(load, "other_run"); other.is_number_integer())
    facts.other_run = other.get<int>();
  return facts;
}

}  // namespace strata::analysis
