// SPDX-License-Identifier: Apache-2.0
// Which runs measured a case before.
#include "store/fingerprint.hpp"
#include "store/statement.hpp"
#include "store/store.hpp"

namespace strata::store {

Result<std::vector<std::string>> Store::runs_of_case(const std::string& case_key, const std::string& network,
                                                     const Json& machine) const {
  // A sweep or a training names its verb: their processes do more than this case.
  Statement ask(handle(),
                "SELECT u.run_id FROM run_cases c JOIN runs u ON u.run_id=c.run_id WHERE c.hash=? AND c.network=? AND "
                "u.machine_hash=? AND CASE WHEN json_valid(u.settings) THEN json_extract(u.settings,'$.verb') IS NULL "
                "ELSE 0 END ORDER BY u.started DESC, u.rowid DESC");
  ask.bind(case_key).bind(network).bind(machine_of(machine).hash());
  std::vector<std::string> ids;
  while (ask.step()) ids.push_back(ask.text());
  if (!ask.ok()) return connection_.broken("cannot look for earlier runs of a case");
  return ids;
}

}  // namespace strata::store
