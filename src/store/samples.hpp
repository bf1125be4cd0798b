// SPDX-License-Identifier: Apache-2.0
// Raw samples of passes other than the turns: lists of times in a row's `info` as JSON, as a name that ends in "_ns"
// says. In the store they are blobs of the one encoding that blocks have, by their place in `info`, where null stands
// for them. Internal to store/.
#pragma once

#include <sqlite3.h>

#include <string>
#include <utility>
#include <vector>

#include "store/record.hpp"

namespace strata::store {

using Samples = std::vector<std::pair<std::string, std::vector<std::int64_t>>>;  // by JSON pointer

// Takes the lists out of `info`.
Samples take_samples(Json& info);
// In place of those that the row had. False: SQLite refused.
bool write_samples(sqlite3* handle, std::int64_t row_id, const Samples& samples);
// Puts one back; false: no list was ever taken from there.
bool put_back(Json& info, const std::string& place, const std::vector<std::int64_t>& values);

}  // namespace strata::store
