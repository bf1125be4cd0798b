// SPDX-License-Identifier: Apache-2.0
// Reading what is still JSON of a result (docs/results_schema.md): the machine, environments, settings and facts.
#pragma once

#include "common/lookup.hpp"

namespace strata::report {

using lookup::list;
using lookup::number;
using lookup::text;
using Json = nlohmann::json;

}  // namespace strata::report
