// SPDX-License-Identifier: Apache-2.0
// The sections of a comparison, one file each; compare.cpp says in which order they stand. One without items is left
// out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/result.hpp"
#include "report/document.hpp"

namespace strata::report {

// Levels with a number, those without and why, limit, trust, next command.
document::Section result_section(const analysis::RunResult& run, const analysis::CaseResult& one_case);

// What options of the run add: a training step's phases, several clients, the limit of --slo, what --tuned tried, one
// artefact over several batch sizes.
document::Section profile_section(const analysis::CaseResult& one_case);
document::Section phases_section(const analysis::CaseResult& one_case);
document::Section clients_section(const analysis::CaseResult& one_case);
document::Section slo_section(const analysis::CaseResult& one_case);
document::Section tuning_section(const analysis::CaseResult& one_case);
document::Section dynamic_section(const analysis::CaseResult& one_case);

// What each step from a level to another changes, costs or saves.
document::Section ledger_section(const analysis::CaseResult& one_case);

document::Section times_section(const analysis::CaseResult& one_case);
document::Section memory_section(const analysis::CaseResult& one_case);
document::Section startup_section(const analysis::CaseResult& one_case);

// What each level costs besides its time.
document::Section total_cost_section(const analysis::CaseResult& one_case);

// Every number of a level, and why others have none.
document::Section numbers_section(const analysis::CaseResult& one_case);

// Every line of the proofs of equal work, folded away level by level.
document::Section certificate_section(const analysis::CaseResult& one_case);

// The same to be read from its beginning to its end: of one level or of all, also of those that have none.
document::Section certificates_of(const analysis::CaseResult& one_case, const std::optional<std::string>& level);

// A part for each group of cases that differ in their precision alone: accuracy against speed.
std::vector<document::Document> accuracy_parts(const analysis::RunResult& run);

// Command, warnings, machine and environments of a run.
document::Document environment_part(const analysis::RunResult& run);

}  // namespace strata::report
