// SPDX-License-Identifier: Apache-2.0
// What each level needs to meet a limit on a quantile of the time of one request (`--slo`), in words.
#pragma once

#include <string>
#include <vector>

#include "analysis/result.hpp"

namespace strata::report {

// "static: batch 8, 2 clients, 310 inputs/s at p99 18.1 ms (at most 19.0 ms)".
std::string slo_sentence(const analysis::SloLevel& level, const std::string& quantile, double limit_ms);

// "p99 within 20.0 ms", and a sentence for each level; empty where the case has none.
std::string slo_title(const analysis::CaseResult& one_case);
std::vector<std::string> slo_lines(const analysis::CaseResult& one_case);

}  // namespace strata::report
