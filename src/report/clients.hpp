// SPDX-License-Identifier: Apache-2.0
// Several clients at once: what a point of a row's `clients` is called, and its columns in a CSV.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "analysis/result.hpp"
#include "report/table.hpp"

namespace strata::report {

// One point as people name it: "1 client", "4 clients", "4 processes".
std::string clients_name(double clients, const std::string& as);

// CSV: the columns of every number of clients that some row of the run has, and a row's cells for them.
struct ClientColumns {
  std::vector<std::pair<int, std::string>> points;  // clients, "threads" or "processes"
  Cells header;
  Cells cells(const analysis::RowResult& row) const;
};
ClientColumns client_columns(const analysis::RunResult& run);

}  // namespace strata::report
