// SPDX-License-Identifier: Apache-2.0
// A case while it is run: what was asked and captured, its participants, and the one place to which results go. It is
// what passes (passes/pass.hpp) work on.
#pragma once

#include <set>

#include "analysis/blocks.hpp"
#include "measure/case_sink.hpp"
#include "measure/compare.hpp"
#include "measure/dynamic.hpp"
#include "measure/interrupted_case.hpp"
#include "measure/references.hpp"

namespace strata::measure {

class CaseRun {
 public:
  CaseRun(const Setting& setting, const plan::Bundle& bundle, const CaseExtras& extras, MachineFacts& facts,
          store::Store& store, const Progress& progress);

  // Opens the references and gives every level its row. `question`: the bundle's question, or a whole training of it.
  // Error: the store's, or a bundle that cannot be read.
  Result<void> begin(const std::vector<level::Level>& levels, const core::Case& question);
  // The last state of every row.
  Result<Outcome> finish();

  Result<Participant> make_participant(const level::Level& level) const;
  const std::filesystem::path& logs() const { return logs_; }
  Result<void> add_row(Participant& participant);
  // Prepares the level and proves equal work on all weight sets; alone on the machine also its start and its memory.
  void prove(Participant& participant);
  // A warning of a kind that every visit of a case may come to, about the case or the row: the first one stays.
  // `noted`: also said to people.
  Result<void> warn_once(store::Warning warning, bool noted = false);
  // The certificate as far as it goes now; a level that is not equal loses its numbers.
  void certify(Participant& participant);
  // Where all levels of other authors were refused, and agree: told of.
  Result<void> weigh_refusals();
  void store_phases(
      Participant& participant) const;  // medians of a training step's, for the report; nothing in inference
  // Of another bundle of the case.
  Result<Job> make_job(const Participant& participant, const plan::Bundle& other) const;
  Try<double> prepare(const Job& job) const;  // as session::prepare
  std::vector<std::string> prepare_command(const level::Level& level) const;
  std::optional<Failure> cannot_run(const level::Level& level) const;  // as plan::cannot_run
  int threads() const { return bundle.question.threads; }
  stats::CoreBudget room() const { return analysis::core_budget_of(bundle.question, setting.machine); }

  const Setting& setting;
  const plan::Bundle& bundle;
  const CaseExtras extras;
  const Progress progress;
  CaseSink sink;
  References references;
  std::optional<DynamicPass> open_batch;
  store::Case record;
  std::vector<Participant> participants;
  InterruptedCase interrupted_case;
  int restarts = 0;                // whole ones, of this visit and those before
  std::vector<probe::Load> loads;  // of others in them
  bool failed = false;             // what fails without costing a row its state

 private:
  Result<void> look_at_machine();
  worker::ProgressCallback shown_for(const level::Level& level) const;  // in the line of progress, with its name
  Result<void> learn_from_earlier(const std::vector<level::Level>& levels);
  std::optional<Failure> prepare_one(const Participant& participant) const;
  std::optional<Failure> prove_in_float32(Participant& participant);

  MachineFacts& facts_;
  store::Store& store_;
  std::filesystem::path logs_;
  std::set<std::pair<std::string, std::int64_t>> warned_;  // code and row
};

// Not in the store yet. `logs`: the folder of the case's logs.
Result<Participant> make_participant(const level::Level& level, const plan::Bundle& bundle, const Setting& setting,
                                     const std::filesystem::path& logs);

}  // namespace strata::measure
