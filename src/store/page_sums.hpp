// SPDX-License-Identifier: Apache-2.0
// Every page of the store's file carries a checksum in its last 8 bytes (the first 8 of the SHA-256 of its number and
// its other bytes), so that a page that a disk or a program changed is refused when it is read, whatever stands in it.
// A layer below SQLite ("VFS"): files are SQLite's own in all else, and any SQLite reads them. Not seen: a whole file
// put back from an earlier day, and frames lost from the write-ahead log that a killed program leaves behind (its
// blocks then count as never measured).
#pragma once

#include <sqlite3.h>

#include <cstdint>

namespace strata::store {

constexpr int kSumBytes = 8;  // at the end of a page, SQLite's "reserved bytes"

// The name of the layer for sqlite3_open_v2; registers it on first use. nullptr: SQLite refused.
const char* page_sums_vfs();

// Whether the pages of this open database have sums.
bool has_page_sums(sqlite3* handle);

// The page (from 1) whose sum was last found wrong by this thread; 0: none was.
std::int64_t last_wrong_page();

}  // namespace strata::store
