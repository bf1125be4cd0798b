// SPDX-License-Identifier: Apache-2.0
// One prepared SQLite statement: bind in order, step, read columns in order. Internal to store/.
#pragma once

#include <sqlite3.h>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "store/record.hpp"

namespace strata::store {

class Statement {
 public:
  Statement(sqlite3* handle, const char* sql) : handle_(handle) {
    if (sqlite3_prepare_v2(handle, sql, -1, &statement_, nullptr) != SQLITE_OK) statement_ = nullptr;
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(const std::string& text) {
    sqlite3_bind_text(statement_, ++bound_, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    return *this;
  }
  Statement& bind(std::int64_t value) {
    sqlite3_bind_int64(statement_, ++bound_, value);
    return *this;
  }
  Statement& bind(int value) { return bind(static_cast<std::int64_t>(value)); }
  Statement& bind(double value) {
    sqlite3_bind_double(statement_, ++bound_, value);
    return *this;
  }
  Statement& bind(const std::optional<std::int64_t>& value) {
    if (value) return bind(*value);
    sqlite3_bind_null(statement_, ++bound_);
    return *this;
  }
  Statement& bind(const std::optional<double>& value) {
    if (value) return bind(*value);
    sqlite3_bind_null(statement_, ++bound_);
    return *this;
  }
  // Bytes that are not UTF-8 (a worker's log) are replaced, never a reason to lose a row.
  Statement& bind(const Json& value) { return bind(value.dump(-1, ' ', false, Json::error_handler_t::replace)); }
  Statement& bind(const std::vector<std::int64_t>& values) {  // little-endian int64, as the machine has them
    sqlite3_bind_blob(statement_, ++bound_, values.data(), static_cast<int>(values.size() * sizeof(std::int64_t)),
                      SQLITE_TRANSIENT);
    return *this;
  }

  // True: a row is ready. False: done or failed (ok() tells).
  bool step() {
    column_ = 0;
    code_ = statement_ ? sqlite3_step(statement_) : sqlite3_errcode(handle_);
    return code_ == SQLITE_ROW;
  }
  bool ok() const { return code_ == SQLITE_DONE || code_ == SQLITE_ROW; }

  std::string text() {
    const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column_));
    const int bytes = sqlite3_column_bytes(statement_, column_++);
    return data ? std::string(data, static_cast<std::size_t>(bytes)) : std::string();
  }
  std::int64_t integer() { return sqlite3_column_int64(statement_, column_++); }
  double real() { return sqlite3_column_double(statement_, column_++); }
  std::optional<std::int64_t> optional_integer() {
    if (sqlite3_column_type(statement_, column_) == SQLITE_NULL) {
      ++column_;
      return std::nullopt;
    }
    return integer();
  }
  std::optional<double> optional_real() {
    if (sqlite3_column_type(statement_, column_) == SQLITE_NULL) {
      ++column_;
      return std::nullopt;
    }
    return real();
  }
  Json json() { return Json::parse(text(), nullptr, false); }
  std::vector<std::int64_t> integers() {
    const void* data = sqlite3_column_blob(statement_, column_);
    const auto bytes = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column_++));
    std::vector<std::int64_t> values(bytes / sizeof(std::int64_t));
    if (!values.empty()) std::memcpy(values.data(), data, values.size() * sizeof(std::int64_t));
    return values;
  }

 private:
  sqlite3* handle_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0, column_ = 0, code_ = SQLITE_OK;
};

}  // namespace strata::store
