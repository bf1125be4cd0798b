// SPDX-License-Identifier: Apache-2.0
// The numbers of a case's result, from what is stored of it. Its words are report/result.hpp's.
#pragma once

#include "analysis/case_statistics.hpp"
#include "analysis/result.hpp"

namespace strata::analysis {

// Without what words are made of: `headline`, `next_command`, `reference_instead_of`, and without `ledger` and `slo`.
CaseResult case_result(const store::Run& run, const store::Case& run_case, const CaseStatistics& statistics);

// What others used of the machine, in percent.
void add_load(TrustFacts& trust, const store::LoadFacts& load);

// From level to level, what each changes, costs or saves. An edge is a step only where what it does not change is the
// same on both sides; otherwise it says what differs. The recommended level has an edge whatever it is.
Ledger ledger_of(const store::Run& run, const CaseStatistics& statistics, const std::string& recommended);

// "layout: contiguous, blocked" for each of layout, precision, freezing and threads that differs between two levels'
// settings (docs/protocol.md). A layout `any` matches every other; what a level does not report counts as a difference.
std::vector<std::string> setting_differences(const nlohmann::json& from, const nlohmann::json& to);

}  // namespace strata::analysis
