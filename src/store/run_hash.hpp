// SPDX-License-Identifier: Apache-2.0
// Hashes of a run by which damage of what is stored is seen, whatever stands there now: of all that was measured, and,
// as that is long to read, of what a list of runs shows. A run has them from its end on (docs/store.md). Internal to
// store/.
#pragma once

#include <sqlite3.h>

#include <optional>
#include <string>

namespace strata::store {

// nullopt: SQLite refused.
std::optional<std::string> content_hash(sqlite3* handle, const std::string& run_id);
std::optional<std::string> list_hash(sqlite3* handle, const std::string& run_id);

// Of a run that has an end; one without is left alone. False: SQLite refused.
bool write_hashes(sqlite3* handle, const std::string& run_id);
bool write_list_hash(sqlite3* handle, const std::string& run_id);

}  // namespace strata::store
