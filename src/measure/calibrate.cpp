// SPDX-License-Identifier: Apache-2.0
#include "measure/calibrate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/interrupt.hpp"
#include "run/criteria.hpp"
#include "run/interleaver.hpp"

namespace strata::measure {
namespace {

constexpr int kInstances = 8;
constexpr int kSessions = 2;
constexpr int kFewestRoundsOfSession = 5;
constexpr double kCalibrationBlockNs = 20e6;

tl::unexpected<Error> failed(const Failure& why) {
  return fail(fmt::format("calibration: {}", why.what), why.hint);
}

// What the instances of one calibration share.
struct Shared {
  const Job& job;
  int threads;
  double iteration_ns = 1;  // of the instance that was started last; all have the same number of iterations
  stats::Blocks blocks;     // [session][round][instance], medians in ns
};

// One of the instances. What fails ends the calibration.
class Instance : public run::Executor {
 public:
  Instance(Shared& shared, int number) : shared_(shared), number_(number) {}
  std::string name() const override { return fmt::format("process {} of {}", number_ + 1, kInstances); }
  bool active() const override { return true; }
  Result<void> start(int restart) override;
  Result<run::TurnOutcome> measure(const run::Turn& turn) override;
  void pause() override { session_->process().pause(); }
  void resume() override { session_->process().resume(); }
  void stop() override { session_.reset(); }

 private:
  Shared& shared_;
  int number_;
  std::unique_ptr<Session> session_;
};

Result<void> Instance::start(int /*restart*/) {
  auto session = Session::open(shared_.job, shared_.threads == 1 ? std::vector<int>{0} : std::vector<int>{});
  if (!session) return failed(session.error());
  session_ = std::move(*session);
  if (auto done = session_->load("timed"); !done) return failed(done.error());
  const auto walls = session_->warm_up(10, std::chrono::milliseconds(300));
  if (!walls) return failed(walls.error());
  shared_.iteration_ns =
      std::max(1.0, stats::median(std::vector<double>(walls->begin() + static_cast<std::ptrdiff_t>(walls->size() / 2),
                                                      walls->end())));
  return {};
}

Result<run::TurnOutcome> Instance::measure(const run::Turn& turn) {
  const int iterations = std::max(1, static_cast<int>(std::lround(kCalibrationBlockNs / shared_.iteration_ns)));
  const BlockPlan plan{.iterations = iterations,
                       .head = shared_.iteration_ns < 10e6 ? 2 : 0,
                       .indices = std::vector<int>(static_cast<std::size_t>(iterations), 0)};
  const auto block = session_->measure(plan);
  if (!block) return failed(block.error());
  auto& rounds = shared_.blocks[static_cast<std::size_t>(turn.restart)];
  if (turn.position == 0) rounds.emplace_back(kInstances, stats::nan);
  rounds.back()[static_cast<std::size_t>(number_)] =
      stats::median(std::vector<double>(block->wall_ns.begin(), block->wall_ns.end()));
  return run::TurnOutcome::block;
}

class Saying : public run::Sink {
 public:
  Saying(const run::StopByTime& rounds, const Progress& progress) : rounds_(rounds), progress_(progress) {}
  void starting(const run::Executor& executor, int restart) override {
    progress_.status(fmt::format("session {} of {}: starting {}", restart + 1, kSessions, executor.name()), -1);
  }
  void round_begins(int restart, int round) override {
    progress_.status(fmt::format("session {} of {}: measuring, round {}", restart + 1, kSessions, round + 1),
                     rounds_.left());
  }

 private:
  const run::StopByTime& rounds_;
  const Progress& progress_;
};

}  // namespace

Result<store::ProcessEffect> calibrate(const Job& job, int threads, double seconds, const Json& machine,
                                       const Progress& progress) {
  Shared shared{.job = job, .threads = threads, .blocks = stats::Blocks(kSessions)};
  std::vector<Instance> instances;
  for (int number = 0; number < kInstances; ++number) instances.emplace_back(shared, number);
  std::vector<run::Executor*> together;
  for (auto& instance : instances) together.push_back(&instance);
  run::StopByTime rounds(seconds, kFewestRoundsOfSession);
  Saying sink(rounds, progress);
  const auto ended = run::Interleaver({.seed = 1, .restarts = kSessions}, rounds, nullptr, sink).run({together});
  if (interrupted()) return fail("calibration: interrupted; nothing was stored", "run it again");
  if (!ended) return tl::unexpected(ended.error());
  const auto estimate = stats::estimate_process_effect(shared.blocks);
  if (!std::isfinite(estimate.sigma))
    return fail("calibration: the process effect could not be estimated from these blocks",
                "run it again on an idle machine");
  store::ProcessEffect effect{.machine = machine_key(machine),
                              .measured = utc_now(),
                              .threads = threads,
                              .sigma = estimate.sigma,
                              .low = estimate.low,
                              .high = estimate.high};
  effect.detail = {{"level", job.level.id},
                   {"case", job.bundle->info.value("id", "")},
                   {"instances", estimate.instances},
                   {"sessions", estimate.sessions},
                   {"rounds", {shared.blocks[0].size(), shared.blocks[1].size()}}};
  return effect;
}

std::string machine_key(const Json& machine) {
  const auto part = [&](const char* name) { return machine.contains(name) ? machine[name].dump() : std::string(); };
  return part("cpu") + part("cores") + part("memory_bytes");
}

Result<ProcessSigma> process_sigma(const store::Store& store, const Json& machine, int threads) {
  const auto effect = STRATA_TRY(store.find_effect(machine_key(machine), threads));
  if (effect) return ProcessSigma{effect->sigma, "calibrated " + effect->measured.substr(0, 10)};
  return ProcessSigma{stats::assumed_process_sigma(threads), "assumed"};
}

}  // namespace strata::measure
