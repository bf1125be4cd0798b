// SPDX-License-Identifier: Apache-2.0
// The operations of a level's profile as a table: grouped, sorted and cut as somebody asks.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "analysis/operation_groups.hpp"
#include "analysis/result.hpp"
#include "common/result.hpp"
#include "report/document.hpp"

namespace strata::report {

// By which column; all but `order` the largest first. Order is that of the iteration's first call of each line.
enum class OperationSort { time, mean, calls, between, flops, rate, order };
inline constexpr OperationSort all_operation_sorts[] = {
    OperationSort::time,  OperationSort::mean, OperationSort::calls, OperationSort::between,
    OperationSort::flops, OperationSort::rate, OperationSort::order};
std::string_view name_of(OperationSort sort);

struct OperationsView {
  analysis::GroupBy by = analysis::GroupBy::operation;
  OperationSort sort = OperationSort::time;
  std::size_t top = 15;              // lines; 0: all
  std::optional<std::string> level;  // nullopt: all that have a profile
};

// Of a row that has a profile. `limits`: what the machine was measured to do at most.
document::Table operations_table(const analysis::RowResult& row, const std::optional<analysis::LimitFacts>& limits,
                                 const OperationsView& view);

// A table for each profiled level of each case. Error: the run, or the level, has no profile.
Result<document::Document> operations_document(const analysis::RunResult& run, const OperationsView& view);

// That a run has no profile, and what to do.
Error no_profile(const analysis::RunResult& run);

}  // namespace strata::report
