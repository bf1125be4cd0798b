// SPDX-License-Identifier: Apache-2.0
// Reading a result object (docs/results_schema.md).
#pragma once

#include <vector>

#include "common/lookup.hpp"
#include "core/participant_id.hpp"

namespace strata::report {

using lookup::at;
using lookup::flag;
using lookup::list;
using lookup::number;
using lookup::text;
using lookup::whole;
using Json = nlohmann::json;

// "compile", or "compile@max-autotune" where the variant is not the default one; of several environments also
// "compile[new]".
std::string level_name(const Json& row);
core::ParticipantId participant_of(const Json& row);

bool is_measured(const Json& row);

// Whether a case trains.
bool is_training(const Json& one_case);

// The rows of a case: by rank, then peers, then harness levels; equal ones keep their order.
std::vector<const Json*> sorted_rows(const Json& one_case);

// The row that ratios refer to, or nullptr.
const Json* reference_row(const Json& one_case);

}  // namespace strata::report
