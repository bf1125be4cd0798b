// SPDX-License-Identifier: Apache-2.0
// Two stored runs of the same cases against each other, level by level. They were not measured in turns, so that what
// changed on the machine between them counts as a change of a level; a level's speedup over the reference of its own
// run does not have that in it.
#pragma once

#include <nlohmann/json.hpp>

#include "report/document.hpp"
#include "store/record.hpp"

namespace strata::report {

// Cases are matched by key, and else by their question without the weights; what of the network was changed is noted.
// docs/results_schema.md, "strata.diff/1". `threshold`: analysis/gate.hpp. Nothing is said of a case that was not
// reliable in one of the runs.
nlohmann::json difference(const store::Run& before, const store::Run& after, double threshold);

// The same as a document.
document::Document difference_document(const nlohmann::json& difference);

}  // namespace strata::report
