// SPDX-License-Identifier: Apache-2.0
// The SQLite store: write-ahead log, every block committed the moment it is measured. What is read is right or an
// error: runs have hashes (run_hash.hpp), cells have types and bounds. A store that another program holds is waited
// for.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "common/result.hpp"
#include "store/connection.hpp"
#include "store/record.hpp"

namespace strata::store {

// Who tells a person that the store is being waited for; nobody if this was never called.
void say_through(void (*to_whom)(std::string_view));

class Store {
 public:
  // Opens or creates the file. Errors: not a store, damaged, written by another version of strata, not writable.
  static Result<Store> open(const std::filesystem::path& path);
  // Opens an existing store for reading, which needs no right to write; an absent file is an error with a hint.
  static Result<Store> open_existing(const std::filesystem::path& path);
  // What open() would refuse is refused, and nothing is made or changed; nullopt: open() would begin a store there.
  static Result<std::optional<Store>> look_at(const std::filesystem::path& path);
  // $XDG_DATA_HOME/strata/strata.db, or ~/.local/share/strata/strata.db.
  static std::filesystem::path default_path();
  static std::filesystem::path path_of(const std::string& named);  // empty: the default

  Result<void> begin_run(const Run& run);                  // the run's own fields; its cases are added one by one
  Result<void> finish_run(const Run& run);                 // its finished, interrupted, settings and hashes
  Result<void> continue_run(Run& run);                     // its process: it has no end, and no case-less warnings
  Result<void> drop_empty_run(const std::string& run_id);  // nothing if it has a case
  Result<void> add_warning(const std::string& run_id, const Warning& warning);
  Result<void> add_case(const std::string& run_id, const Case& run_case);  // without its rows
  Result<std::int64_t> add_row(const std::string& run_id, const std::string& case_key, const Row& row);
  Result<void> update_row(const Row& row);  // everything but its blocks, by row_id
  Result<void> add_block(std::int64_t row_id, const Block& block);
  // What a list of runs says of cases, by their keys.
  Result<void> set_verdicts(const std::string& run_id, const std::map<std::string, std::string>& verdicts);
  // A restart of a case whose blocks are all stored, in order; `load`: what others had meanwhile, as the caller writes
  // it.
  Result<void> add_restart(const std::string& run_id, const std::string& case_key, int number, const Json& load);
  Result<std::vector<Json>> restarts(const std::string& run_id, const std::string& case_key) const;
  // Of a case that goes on: its warnings and the blocks from this restart on are dropped; with 0 all its rows.
  Result<void> drop_warnings(const std::string& run_id, const std::string& case_key);  // that are about the case
  Result<void> drop_restarts(const std::string& run_id, const std::string& case_key, int first);
  Result<void> finish_case(const std::string& run_id, const std::string& case_key);
  // What others had of the processors in rounds `first` to `last` of a restart, in all blocks of the row.
  Result<void> set_taken(std::int64_t row_id, int restart, int first, int last, double taken);
  // All metrics of the case's rows, in place of those that it had.
  Result<void> set_metrics(const std::string& run_id, const std::string& case_key, const std::vector<Metric>& metrics);
  // Adds to series, or writes positions anew; all together.
  Result<void> add_series(std::int64_t row_id, const std::vector<Series>& all);
  Result<void> save_effect(const ProcessEffect& effect);
  // Keeps the better of each figure and of what is stored, and returns that.
  Result<Peak> save_peak(const Peak& peak);

  // Takes a run over with all that belongs to it; false: it is here already, with the same content. Its machine, its
  // environments and its cases are made of what it says of them. Errors: a run of this id with other content; what it
  // shares with others is not what its hash says; it is running; damage in either store.
  Result<bool> copy_run(const Store& from, const std::string& run_id);
  // With all that belongs to it and to no other run. Error: it is running.
  Result<void> delete_run(const std::string& run_id);
  // Makes the file as small as what it holds.
  Result<void> give_back_space();
  Result<bool> has_run(const std::string& run_id) const;

  // The newest first. `limit` 0 = all. Cases and rows are left empty.
  Result<std::vector<Run>> list_runs(int limit) const;
  // The id of the run that is meant by an id, a unique beginning of it, its name, or "last": the newest that has a
  // case, of those that came from another store only where there is no other. Error: no such run.
  Result<std::string> find_run(const std::string& which) const;
  // A whole run by its id, a unique beginning of it, its name, or "last": the newest that has a case. Errors: no such
  // run; damage, whatever it is; interrupted.
  Result<Run> load_run(const std::string& which) const;
  // The run of exactly this id, and the same with one of its cases alone (without any where it has none of this key).
  Result<Run> load_id(const std::string& run_id) const;
  Result<Run> load_case(const std::string& run_id, const std::string& case_key) const;
  Result<std::optional<ProcessEffect>> find_effect(const std::string& machine, int threads) const;
  Result<std::vector<ListedCase>> run_cases(const std::string& run_id) const;

  Result<std::vector<Metric>> metrics(const std::string& run_id) const;  // by row, as core/metric.def has them
  Result<std::vector<Series>> series(std::int64_t row_id) const;
  // What steps of this case took on this machine at each level, whatever was trained how long: of comparisons of steps
  // (of images of this size), then of trainings on the case's data (of this size, if it is known); each the newest
  // last.
  Result<std::vector<StepTime>> step_times(const core::Case& question, std::optional<std::int64_t> height,
                                           std::optional<std::int64_t> width, const Json& machine) const;
  // Runs that compared this case of this network on this machine, the newest first; sweeps and trainings are not among
  // them.
  Result<std::vector<std::string>> runs_of_case(const std::string& case_key, const std::string& network,
                                                const Json& machine) const;
  // Participants that ran out of memory on this machine; those that were skipped for it are not among them.
  Result<std::vector<OutOfMemory>> out_of_memory(const Json& machine) const;
  // What levels needed for cases of this network on this machine, the newest first; at most `limit`.
  Result<std::vector<PeakMemory>> peak_memories(const std::string& model, const Json& machine, int limit) const;
  // Runs with a case that has no metrics of today's meaning, the oldest first: of an older strata, killed, or running.
  Result<std::vector<std::string>> runs_without_metrics() const;

  const std::filesystem::path& path() const { return connection_.path(); }

 private:
  explicit Store(Connection connection) : connection_(std::move(connection)) {}
  sqlite3* handle() const { return connection_.handle(); }
  Connection connection_;
  mutable std::set<std::string> verified_;  // runs whose content is that of their hash
};

}  // namespace strata::store
