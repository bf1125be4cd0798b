// SPDX-License-Identifier: Apache-2.0
// What each level needs to meet a limit on a quantile of the time of one request (`--slo`).
#pragma once

#include "report/access.hpp"
#include "store/record.hpp"

namespace strata::report {

// Adds `slo` to every case of the result: for the first case of those that differ in their batch only, from the points
// of all of them; null for the others, and where none was asked for.
void add_slo(const store::Run& run, Json& cases);

// "p99 within 20.0 ms", and a sentence for each level; empty where the case has none.
std::string slo_title(const Json& one_case);
std::vector<std::string> slo_lines(const Json& one_case);

}  // namespace strata::report
