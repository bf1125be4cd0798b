// SPDX-License-Identifier: Apache-2.0
// A suite's run: in the store, what became of each entry; and going through those that are not done.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/events.hpp"
#include "engine/run_context.hpp"
#include "engine/suite_entries.hpp"
#include "store/store.hpp"

namespace strata::engine {

struct PlannedEntry {
  SuiteEntry entry;
  std::optional<double> predicted_s, bytes;  // nullopt: not known
  std::string levels, amount, basis;         // for people: which levels, how much, where the time comes from
  std::optional<Error> unavailable;          // why it cannot run here
};

struct ReadSuite {
  suite::Suite suite;
  std::vector<SuiteEntry> entries;
  std::filesystem::path store;
};

// Its file and what that asks for. `store`: as it was named; empty: the default one. Error: with file and line.
Result<ReadSuite> read_suite(const requests::SuiteRequest& request, const std::string& store);

// What is predicted of each, in order. `store`: need not exist. Error: an entry that is wrong; with its line.
Result<std::vector<PlannedEntry>> plan_entries(const suite::Suite& suite, const std::vector<SuiteEntry>& entries,
                                               const std::filesystem::path& store, EventSink& events);

// The suite's run as it begins. `format`: of its summary, for `resume`.
store::Run describe_suite(const suite::Suite& suite, const std::vector<SuiteEntry>& entries,
                          const requests::SuiteRequest& request, const std::string& command, const std::string& format);

// Carries out an entry's request and shows it: an exit code, or what kept it from its end.
using RequestRunner = std::function<Result<int>(const requests::Request&, RunContext)>;

class SuiteRun {
 public:
  // A new one, not stored yet.
  SuiteRun(store::Run run, std::filesystem::path store) : run_(std::move(run)), store_(std::move(store)) {}
  // The newest of this suite, with this scale and these entries, that is not at its end; nullopt: there is none.
  static Result<std::optional<store::Run>> unfinished(const std::filesystem::path& store, const std::string& hash,
                                                      const std::string& scale, const std::vector<SuiteEntry>& entries);

  // Goes through the entries that are not done, to its end in the store. Error: the store's.
  Result<void> run(const std::vector<PlannedEntry>& entries, bool resumed, EventSink& events,
                   const RequestRunner& runner);

  bool is_done(std::size_t entry) const;  // and is not repeated
  int exit_code() const;
  const std::string& id() const { return run_.run_id; }

 private:
  struct Done {
    std::string state, reason;
    int code = 0;
  };
  void predict(const std::vector<PlannedEntry>& entries);  // what is kept of the plan; before begin()
  Result<void> begin(bool resumed);
  Result<void> go_on(const std::vector<PlannedEntry>& entries, EventSink& events, const RequestRunner& runner);
  Result<void> end();
  Done run_entry(const PlannedEntry& planned, std::size_t place, const RequestRunner& runner);
  // The run of an entry that an earlier go left, whatever became of it; nullopt: none.
  Result<std::optional<store::Run>> run_of(std::size_t place) const;
  Result<void> write();
  store::EntryFacts& entry(std::size_t place) { return run_.settings.suite_run.entries.at(place); }

  store::Run run_;
  std::filesystem::path store_;
};

}  // namespace strata::engine
