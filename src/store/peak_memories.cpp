// SPDX-License-Identifier: Apache-2.0
// What memory levels were seen to need, for who foresees what they will.
#include "store/fingerprint.hpp"
#include "store/statement.hpp"
#include "store/store.hpp"

namespace strata::store {
namespace {

constexpr double kMostBytes = 1e18;

}  // namespace

Result<std::vector<PeakMemory>> Store::peak_memories(const std::string& model, const Json& machine, int limit) const {
  Statement ask(handle(),
                "SELECT r.level,r.variant,r.environment,c.canonical,rc.bundle,m.value FROM metrics m "
                "JOIN level_rows r ON r.row_id=m.row_id JOIN cases c ON c.hash=r.hash "
                "JOIN run_cases rc ON rc.run_id=r.run_id AND rc.hash=r.hash JOIN runs u ON u.run_id=r.run_id "
                "WHERE m.name='peak_memory' AND m.value>0 AND c.model=? AND u.machine_hash=? AND NOT r.harness "
                "ORDER BY u.started DESC, r.row_id LIMIT ?");
  ask.bind(model).bind(machine_of(machine).hash()).bind(limit);
  std::vector<PeakMemory> all;
  while (ask.step()) {
    PeakMemory peak;
    const auto level = ask.text(), variant = ask.text(), environment = ask.text();
    peak.level = name_of(variant == "default" ? level : level + "@" + variant, environment);
    auto question = core::read_case(ask.json(Shape::object), "\"canonical\"");
    if (!question) ask.complain(question.error().what);
    if (question) peak.question = std::move(*question);
    peak.bundle = ask.json(Shape::object_or_null);
    peak.bytes = ask.real(0, kMostBytes);
    if (!ask.fault().empty()) return connection_.damaged("what memory levels needed: " + ask.fault());
    all.push_back(std::move(peak));
  }
  if (!ask.ok()) return connection_.broken("cannot look for what memory levels needed");
  return all;
}

}  // namespace strata::store
