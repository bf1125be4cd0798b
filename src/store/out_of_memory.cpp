// SPDX-License-Identifier: Apache-2.0
// What ran out of memory before, for who need not try it again.
#include "common/lookup.hpp"
#include "store/fingerprint.hpp"
#include "store/statement.hpp"
#include "store/store.hpp"

namespace strata::store {

Result<std::vector<OutOfMemory>> Store::out_of_memory(const Json& machine) const {
  Statement ask(handle(),
                "SELECT r.level,r.variant,r.environment,c.canonical,u.settings,u.environments FROM level_rows r "
                "JOIN cases c ON c.hash = r.hash JOIN runs u ON u.run_id = r.run_id "
                "WHERE r.state = 'out_of_memory' AND r.reason NOT LIKE 'skipped:%' AND u.machine_hash = ? "
                "ORDER BY u.started, r.row_id");
  ask.bind(machine_of(machine).hash());
  std::vector<OutOfMemory> all;
  while (ask.step()) {
    const auto level = ask.text(), variant = ask.text(), environment = ask.text();
    auto question = core::read_case(ask.json(Shape::object), "\"canonical\"");
    if (!question) ask.complain(question.error().what);
    const auto settings = ask.json(Shape::object), environments = ask.json(Shape::array);
    if (!ask.fault().empty()) return connection_.damaged("what ran out of memory: " + ask.fault());
    all.push_back({.level = name_of(variant == "default" ? level : level + "@" + variant, environment),
                   .torch = environments.empty() ? std::string() : lookup::text(environments.front(), "torch"),
                   .question = std::move(*question),
                   .limit_gib = lookup::number(settings, "memory_limit_gib").value_or(0)});
  }
  if (!ask.ok()) return connection_.broken("cannot look for what ran out of memory");
  return all;
}

}  // namespace strata::store
