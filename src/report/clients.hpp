// SPDX-License-Identifier: Apache-2.0
// Several clients at once: from stored repetitions to the `clients` of a row (docs/results_schema.md).
#pragma once

#include "report/access.hpp"
#include "report/table.hpp"

namespace strata::report {

// `stored`: what measure/serve.cpp left in a row's info. null where there is nothing.
Json clients_json(const Json& stored, double batch, double process_sigma, bool reliable);

// One point as people name it: "1 client", "4 clients", "4 processes".
std::string clients_name(double clients, const std::string& as);

// CSV: the columns of every number of clients that some row of the run has, and a row's cells for them.
struct ClientColumns {
  std::vector<std::pair<double, std::string>> points;  // clients, "threads" or "processes"
  Cells header;
  Cells cells(const Json& row) const;
};
ClientColumns client_columns(const Json& run);

}  // namespace strata::report
