// SPDX-License-Identifier: Apache-2.0
#include "store/run_hash.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "common/hash.hpp"
#include "store/run_parts.hpp"
#include "store/statement.hpp"

namespace strata::store {
namespace {

using ColumnNames = std::vector<std::string_view>;

// Each value as its type, its length and its bytes, so that no two lists of values are hashed alike.
class RunHash {
 public:
  RunHash(sqlite3* handle, const std::string& run_id) : handle_(handle), run_id_(run_id) {}

  // All rows that a question about run ?1 has as its answer, without these columns.
  bool add(const std::string& sql, const ColumnNames& without) {
    Statement ask(handle_, sql.c_str());
    ask.bind(run_id_);
    while (ask.step())
      for (int c = 0; c < sqlite3_column_count(ask.raw()); ++c) {
        const std::string_view name = sqlite3_column_name(ask.raw(), c);
        if (std::find(without.begin(), without.end(), name) == without.end()) add_value(ask.raw(), c, name == "row_id");
      }
    return ask.ok();
  }

  std::string hex() { return digest_.hex(); }

 private:
  void add_value(sqlite3_stmt* row, int c, bool is_row_id) {
    const int type = sqlite3_column_type(row, c);
    if (type == SQLITE_INTEGER) {
      auto value = sqlite3_column_int64(row, c);
      if (is_row_id && first_row_ == 0) first_row_ = value;
      if (is_row_id) value -= first_row_;  // a run's rows have other numbers in another store
      digest_.add(fmt::format("i{};", value));
    } else if (type == SQLITE_NULL) {
      digest_.add("n;");
    } else {
      const auto* bytes = static_cast<const char*>(type == SQLITE_FLOAT ? nullptr : sqlite3_column_blob(row, c));
      const double real = type == SQLITE_FLOAT ? sqlite3_column_double(row, c) : 0;
      const std::string_view value = type == SQLITE_FLOAT
                                         ? std::string_view(reinterpret_cast<const char*>(&real), sizeof real)
                                         : std::string_view(bytes, bytes ? sqlite3_column_bytes(row, c) : 0);
      digest_.add(fmt::format("{}{}:", type == SQLITE_FLOAT ? 'r' : type == SQLITE_TEXT ? 't' : 'b', value.size()));
      digest_.add(value);
    }
  }

  sqlite3* handle_;
  const std::string& run_id_;
  std::int64_t first_row_ = 0;
  Sha256 digest_;
};

bool put_hash(sqlite3* handle, const char* sql, const std::string& run_id, const std::optional<std::string>& hash) {
  return hash && execute(handle, sql, *hash, run_id);
}

}  // namespace

std::optional<std::string> content_hash(sqlite3* handle, const std::string& run_id) {
  RunHash hash(handle, run_id);
  for (const auto& part : kRunParts) {
    const std::string_view table = part.table;
    if (table == "metrics") continue;  // computed from the others, and anew by `runs refresh`
    if (!hash.add(fmt::format("SELECT * FROM {} WHERE {} ORDER BY {}", table, part.where, part.order),
                  {"imported", "list_hash", "content_hash", "metrics_version", table == "run_cases" ? "verdict" : ""}))
      return std::nullopt;
  }
  return hash.hex();
}

std::optional<std::string> list_hash(sqlite3* handle, const std::string& run_id) {
  RunHash hash(handle, run_id);
  if (!hash.add("SELECT * FROM runs WHERE run_id=?1", {"list_hash"}) ||
      !hash.add("SELECT r.hash,r.network,r.verdict,c.id FROM run_cases r LEFT JOIN cases c ON c.hash=r.hash WHERE "
                "r.run_id=?1 ORDER BY r.position,r.hash",
                {}))
    return std::nullopt;
  return hash.hex();
}

bool write_list_hash(sqlite3* handle, const std::string& run_id) {
  return put_hash(handle, "UPDATE runs SET list_hash=? WHERE run_id=? AND finished<>''", run_id,
                  list_hash(handle, run_id));
}

bool write_hashes(sqlite3* handle, const std::string& run_id) {
  return put_hash(handle, "UPDATE runs SET content_hash=? WHERE run_id=? AND finished<>''", run_id,
                  content_hash(handle, run_id)) &&
         write_list_hash(handle, run_id);
}

}  // namespace strata::store
