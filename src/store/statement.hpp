// SPDX-License-Identifier: Apache-2.0
// One prepared SQLite statement: bind in order, step, read columns in order. Each column is read as the type and within
// the bounds that strata writes; the first that is not is kept as the fault. Internal to store/.
#pragma once

#include <sqlite3.h>

#include <optional>
#include <string>
#include <vector>

#include "store/record.hpp"

namespace strata::store {

enum class Shape { object, array, object_or_null };  // of JSON in a column

class Statement {
 public:
  Statement(sqlite3* handle, const char* sql) {
    code_ = sqlite3_prepare_v2(handle, sql, -1, &statement_, nullptr);
    ready_ = code_ == SQLITE_OK;
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  // Several, in order.
  template <class First, class Second, class... More>
  Statement& bind(const First& first, const Second& second, const More&... more) {
    bind(first).bind(second);
    (bind(more), ...);
    return *this;
  }
  Statement& bind(const std::string& text) {
    return note(ready_
                    ? sqlite3_bind_text64(statement_, ++bound_, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8)
                    : code_);
  }
  Statement& bind(std::int64_t value) { return note(ready_ ? sqlite3_bind_int64(statement_, ++bound_, value) : code_); }
  Statement& bind(int value) { return bind(static_cast<std::int64_t>(value)); }
  Statement& bind(double value) { return note(ready_ ? sqlite3_bind_double(statement_, ++bound_, value) : code_); }
  template <class T>
  Statement& bind(const std::optional<T>& value) {
    if (value) return bind(*value);
    return note(ready_ ? sqlite3_bind_null(statement_, ++bound_) : code_);
  }
  // Bytes that are not UTF-8 (a worker's log) are replaced, never a reason to lose a row.
  Statement& bind(const Json& value) { return bind(value.dump(-1, ' ', false, Json::error_handler_t::replace)); }
  Statement& bind(const std::vector<std::int64_t>& values) {  // little-endian int64, as the machine has them
    return note(ready_ ? sqlite3_bind_blob64(statement_, ++bound_, values.data(), values.size() * sizeof(std::int64_t),
                                             SQLITE_TRANSIENT)
                       : code_);
  }

  // True: a row is ready. False: done or failed (ok() tells).
  bool step() {
    column_ = 0;
    if (ready_) code_ = sqlite3_step(statement_);
    return code_ == SQLITE_ROW;
  }
  sqlite3_stmt* raw() const { return statement_; }  // nullptr: SQLite refused it
  bool ok() const { return code_ == SQLITE_DONE || code_ == SQLITE_ROW; }

  std::string text();
  std::int64_t integer(std::int64_t low, std::int64_t high);
  std::int64_t integer();
  double real(double low, double high);  // finite
  std::optional<std::int64_t> optional_integer(std::int64_t low);
  std::optional<double> optional_real(double low, double high);
  Json json(Shape shape);
  std::vector<std::int64_t> integers(std::int64_t low, std::int64_t high);

  // What of the columns read so far strata would not have written, and where; empty: all is well.
  const std::string& fault() const { return fault_; }
  void complain(std::string what) {
    if (fault_.empty()) fault_ = std::move(what);
  }
  // Of the texts and blobs read so far.
  std::int64_t bytes() const { return bytes_; }

 private:
  Statement& note(int code) {
    if (code != SQLITE_OK) ready_ = false;
    if (code != SQLITE_OK) code_ = code;
    return *this;
  }
  bool is_null() const { return sqlite3_column_type(statement_, column_) == SQLITE_NULL; }
  bool has_type(int type, const char* allowed);
  std::string name() const;

  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0, column_ = 0, code_ = SQLITE_OK;
  bool ready_ = false;
  std::int64_t bytes_ = 0;
  std::string fault_;
};

// One that has no row for an answer, with these values. False: SQLite refused.
template <class... Values>
bool execute(sqlite3* handle, const char* sql, const Values&... values) {
  Statement statement(handle, sql);
  (statement.bind(values), ...);
  statement.step();
  return statement.ok();
}

// Several writes that are all done or none: undone unless committed.
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
