// SPDX-License-Identifier: Apache-2.0
// One worker process of one level as it takes turns: fresh in each restart (in a sweep: in each walk) and proven before
// it is timed, one output checked in every block, stopped while it waits. It writes nothing: blocks and failures lie in
// its participant.
#pragma once

#include "measure/participant.hpp"
#include "measure/replay.hpp"
#include "measure/restart_meter.hpp"
#include "run/executor.hpp"
#include "session/warm_processes.hpp"

namespace strata::measure {

// Of a worker with so many threads: all (empty); with one, the same core for every worker, another one in each restart
// (docs/measuring.md).
std::vector<int> cpus_of(int threads, int restart);

class LevelExecutor : public run::Executor {
 public:
  // `instance`: 0, or 1 for the second worker of a level in an A/A run, which is active only as long as the first does.
  // `warm`: nullptr: a fresh process in each restart.
  LevelExecutor(Participant& participant, int instance, const ProofReferences& judge, int threads,
                session::WarmProcesses* warm)
      : participant_(participant), instance_(instance), judge_(judge), threads_(threads), warm_(warm) {}

  Participant& participant() { return participant_; }
  const Participant& participant() const { return participant_; }

  std::string name() const override { return participant_.name(); }
  bool active() const override { return participant_.active; }
  Result<void> start(int restart) override;
  void launch(int restart) override;
  void load() override;
  Result<run::TurnOutcome> measure(const run::Turn& turn) override;
  // What its rounds took beside time goes into its row. In mode train: is what it does after the timed blocks still the
  // optimiser's step, and what are its phases?
  Result<void> finish(int restart, stats::Random& random) override;
  void pause() override;
  void resume() override;
  void stop() override;

 private:
  std::optional<Failure> bring_up(int restart);
  Try<std::unique_ptr<Session>> loaded_session(int restart);
  std::optional<Failure> prove_again(Session& session, int restart);
  BlockPlan plan_block(stats::Random& random);
  int usual_iterations() const;  // of a block
  int turn_iterations(stats::Random& random) const;
  void show_unseen(BlockPlan& plan, stats::Random& random);
  void retain_results(BlockPlan& plan, stats::Random& random) const;
  static int iteration_to_check(const BlockPlan& plan, stats::Random& random);
  std::optional<Failure> begin_again();
  std::optional<Failure> note_steps(const BlockPlan& plan, int checked, double loss, stats::Random& random);
  void note_meter(int restart);
  bool behaves(int restart);  // else its row says why not
  void note_clock(const proof::Timed& timed, const BlockPlan& plan);
  void note_conduct(const store::Block& block, const BlockPlan& plan);
  bool on_processors() const;  // and not on a GPU

  Participant& participant_;
  int instance_;
  const ProofReferences& judge_;
  int threads_;
  session::WarmProcesses* warm_;
  std::unique_ptr<Session> session_, loading_;
  bool loaded_ = false;  // what is loading is, beside others
  proof::ClockEvidence clock_;
  std::optional<Replay> replay_;       // in mode train
  std::vector<int> unseen_;            // inputs that this process has not been shown
  std::optional<RestartMeter> meter_;  // of the first instance, in a restart that goes its plain way
  bool began_ = true;                  // in mode train: no block yet since the case's weights were loaded
};

}  // namespace strata::measure
