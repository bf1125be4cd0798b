// SPDX-License-Identifier: Apache-2.0
// Whole runs leave a store, or come to another one. A copy is read back before it counts.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "common/escape.hpp"
#include "store/fingerprint.hpp"
#include "store/run_hash.hpp"
#include "store/run_parts.hpp"
#include "store/run_state.hpp"
#include "store/statement.hpp"
#include "store/store.hpp"

namespace strata::store {
namespace {

// What runs share goes with the last of them.
constexpr std::array kUnused{"DELETE FROM cases WHERE hash NOT IN (SELECT hash FROM run_cases)",
                             "DELETE FROM environments WHERE hash NOT IN (SELECT hash FROM run_environments)",
                             "DELETE FROM machines WHERE hash NOT IN (SELECT machine_hash FROM runs)"};

// Rows are numbered anew by `shift`. False: one of the stores refused; which, their last errors say.
bool copy_part(sqlite3* from, sqlite3* to, const RunPart& part, const std::string& run_id, std::int64_t shift) {
  Statement read(from,
                 fmt::format("SELECT * FROM {} WHERE {} ORDER BY {}", part.table, part.where, part.order).c_str());
  if (!read.raw()) return false;
  read.bind(run_id);
  std::string names, places;
  const int columns = sqlite3_column_count(read.raw());
  int numbered = -1;  // the column that holds a row's number
  for (int c = 0; c < columns; ++c) {
    const std::string name = sqlite3_column_name(read.raw(), c);
    if (name == "row_id") numbered = c;
    names += (c > 0 ? "," : "") + name;
    places += c > 0 ? ",?" : "?";
  }
  Statement write(to, fmt::format("INSERT INTO {}({}) VALUES({})", part.table, names, places).c_str());
  if (!write.raw()) return false;
  while (read.step()) {
    sqlite3_reset(write.raw());
    for (int c = 0; c < columns; ++c) {
      if (c == numbered && sqlite3_column_type(read.raw(), c) == SQLITE_INTEGER)
        sqlite3_bind_int64(write.raw(), c + 1, sqlite3_column_int64(read.raw(), c) + shift);
      else
        sqlite3_bind_value(write.raw(), c + 1, sqlite3_column_value(read.raw(), c));
    }
    if (sqlite3_step(write.raw()) != SQLITE_DONE) return false;
  }
  return read.ok();
}

}  // namespace

Result<bool> Store::has_run(const std::string& run_id) const {
  Statement ask(handle(), "SELECT 1 FROM runs WHERE run_id=?");
  ask.bind(run_id);
  const bool result = ask.step();
  if (!ask.ok()) return connection_.broken("cannot look for a run");
  return result;
}

Result<bool> Store::copy_run(const Store& from, const std::string& run_id) {
  const auto theirs = STRATA_TRY(from.load_id(run_id));
  if (state_of(theirs) == RunState::running)
    return fail(fmt::format("run {} is being measured by another process", run_id), "let it end", Exit::usage);
  for (const auto& stored : theirs.cases)
    if (stored.key != key_of(stored.question) || stored.id != stored.question.id())
      return from.connection_.damaged(fmt::format("the case {} of run {} is not the one of its key",
                                                  escape::one_line(stored.id.substr(0, 80)), run_id));
  const auto content = content_hash(from.handle(), run_id);
  if (!content) return from.connection_.broken("cannot read a run");
  const auto there = STRATA_TRY(has_run(run_id));
  if (there) {
    STRATA_TRY(load_id(run_id));
    if (content_hash(handle(), run_id) == content) return false;
    return fail(fmt::format("run {} is another one in {} than in {}", run_id, path().string(), from.path().string()),
                "one of them was resumed or changed after it was copied: delete the one that is not needed "
                "(`strata runs delete`)");
  }
  constexpr const char* doing = "cannot copy a run";
  Transaction all(handle());
  if (!all.is_open()) return connection_.broken(doing);
  Statement last(handle(), "SELECT coalesce(max(row_id),0) FROM level_rows");
  if (!last.step()) return connection_.broken(doing);
  const auto shift = last.integer(0, std::numeric_limits<std::int64_t>::max() / 4);
  for (const auto& stored : theirs.cases)
    if (!write_case(handle(), stored)) return connection_.broken(doing);
  const auto copied = [&](const RunPart& part) {
    return part.kind != Part::own || copy_part(from.handle(), handle(), part, run_id, shift);
  };
  if (!std::all_of(kRunParts.begin(), kRunParts.end(), copied)) {
    const int code = sqlite3_errcode(from.handle());
    const bool is_theirs = code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE;
    return (is_theirs ? from.connection_ : connection_).broken(doing);
  }
  if (!execute(handle(), "UPDATE runs SET imported=1 WHERE run_id=?", run_id) ||
      !write_fingerprints(handle(), run_id, theirs.machine, theirs.environments) || !write_hashes(handle(), run_id))
    return connection_.broken(doing);
  if (content_hash(handle(), run_id) != content)
    return fail(
        fmt::format("run {} does not read the same in {}: its machine, an environment or a case of it is another "
                    "one than its hash says, or is another one there",
                    run_id, path().string()),
        "keep the stores apart");
  if (!all.commit()) return connection_.broken(doing);
  return true;
}

Result<void> Store::delete_run(const std::string& run_id) {
  const auto run = STRATA_TRY(load_case(run_id, ""));
  if (state_of(run) == RunState::running)
    return fail(fmt::format("run {} is being measured by another process", run_id),
                "let it end or interrupt it; `./strata list runs` shows it", Exit::usage);
  constexpr const char* doing = "cannot delete a run";
  Transaction all(handle());
  if (!all.is_open()) return connection_.broken(doing);
  for (auto part = kRunParts.rbegin(); part != kRunParts.rend(); ++part) {
    if (part->kind == Part::shared) continue;
    if (!execute(handle(), fmt::format("DELETE FROM {} WHERE {}", part->table, part->where).c_str(), run_id))
      return connection_.broken(doing);
  }
  for (const char* sql : kUnused)
    if (!execute(handle(), sql)) return connection_.broken(doing);
  if (!all.commit()) return connection_.broken(doing);
  return {};
}

Result<void> Store::give_back_space() {
  if (sqlite3_exec(handle(), "VACUUM; PRAGMA wal_checkpoint(TRUNCATE);", nullptr, nullptr, nullptr) != SQLITE_OK)
    return connection_.broken("cannot give back the space of what was deleted");
  return {};
}

}  // namespace strata::store
