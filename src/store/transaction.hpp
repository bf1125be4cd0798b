// SPDX-License-Identifier: Apache-2.0
// Several writes that are all done or none: undone unless committed. Internal to store/.
#pragma once

#include <sqlite3.h>

namespace strata::store {

class Transaction {
 public:
  explicit Transaction(sqlite3* handle) : handle_(handle), open_(run("BEGIN IMMEDIATE")) {}
  ~Transaction() {
    if (open_) run("ROLLBACK");
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  bool is_open() const { return open_; }
  // False: SQLite refused, and nothing is done.
  bool commit() {
    if (!open_ || !run("COMMIT")) return false;
    open_ = false;
    return true;
  }

 private:
  bool run(const char* sql) { return sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr) == SQLITE_OK; }
  sqlite3* handle_;
  bool open_;
};

}  // namespace strata::store
