// SPDX-License-Identifier: Apache-2.0
// Facts as the JSON of a column and back. What is empty is not written; what is missing or null stays as in one that
// nobody filled; what is of another type is a fault. Internal to store/.
#pragma once

#include "store/record.hpp"
#include "store/statement.hpp"

namespace strata::store {

Json to_json(const std::optional<Limits>& limits);
Json to_json(const Trust& trust);
Json to_json(const Settings& settings);

// The statement's next column.
void read(Statement& row, std::optional<Limits>& limits);
void read(Statement& row, Trust& trust);
void read(Statement& row, Settings& settings);
void read(Statement& row, std::optional<MemoryFacts>& memory);
void read(Statement& row, std::vector<StartUp>& starts);
void read(Statement& row, std::optional<Proof>& proof);

}  // namespace strata::store
