// SPDX-License-Identifier: Apache-2.0
#include "measure/calibrate.hpp"

#include <fmt/format.h>

#include <cmath>

#include "common/interrupt.hpp"
#include "stats/compare.hpp"
#include "stats/schedule.hpp"

namespace strata::measure {
namespace {

constexpr int kInstances = 8;
constexpr int kSessions = 2;
constexpr double kCalibrationBlockNs = 20e6;

tl::unexpected<Error> failed(const Failure& why) {
  return fail(fmt::format("calibration: {}", why.what), why.hint);
}

// One session: [round][instance] medians in ns.
Result<std::vector<std::vector<double>>> run_session(const Job& job, int threads, double seconds, int number,
                                                     const Progress& progress) {
  std::vector<std::unique_ptr<Session>> sessions;
  double iteration_ns = 1;
  for (int i = 0; i < kInstances && !interrupted(); ++i) {
    progress.status(
        fmt::format("session {} of {}: starting process {} of {}", number + 1, kSessions, i + 1, kInstances), -1);
    auto session = Session::open(job, threads == 1 ? std::vector<int>{0} : std::vector<int>{});
    if (!session) return failed(session.error());
    if (auto done = (*session)->load("timed"); !done) return failed(done.error());
    auto walls = (*session)->warm_up(10, std::chrono::milliseconds(300));
    if (!walls) return failed(walls.error());
    (*session)->process().pause();
    iteration_ns = std::max(1.0, stats::median(std::vector<double>(
                                     walls->begin() + static_cast<std::ptrdiff_t>(walls->size() / 2), walls->end())));
    sessions.push_back(std::move(*session));
  }
  const int iterations = std::max(1, static_cast<int>(std::lround(kCalibrationBlockNs / iteration_ns)));
  const BlockPlan plan{iterations, iteration_ns < 10e6 ? 2 : 0, 0,
                       std::vector<int>(static_cast<std::size_t>(iterations), 0)};
  stats::Schedule schedule(kInstances, static_cast<std::uint64_t>(number) + 1);
  std::vector<std::vector<double>> rounds;
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    if (interrupted()) return fail("calibration: interrupted; nothing was stored", "run it again");
    const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (spent >= seconds && rounds.size() >= 5) return rounds;
    progress.status(fmt::format("session {} of {}: measuring, round {}", number + 1, kSessions, rounds.size() + 1),
                    std::max(0.0, seconds - spent));
    std::vector<double> round(kInstances, stats::nan);
    for (const int i : schedule.next()) {
      auto block = sessions[static_cast<std::size_t>(i)]->measure(plan);
      if (!block) return failed(block.error());
      sessions[static_cast<std::size_t>(i)]->process().pause();
      round[static_cast<std::size_t>(i)] =
          stats::median(std::vector<double>(block->wall_ns.begin(), block->wall_ns.end()));
    }
    rounds.push_back(std::move(round));
  }
}

}  // namespace

Result<store::ProcessEffect> calibrate(const Job& job, int threads, double seconds, const Json& machine,
                                       const Progress& progress) {
  stats::Blocks blocks;
  for (int number = 0; number < kSessions; ++number) {
    auto rounds = run_session(job, threads, seconds, number, progress);
    if (!rounds) return tl::unexpected(rounds.error());
    blocks.push_back(std::move(*rounds));
  }
  const auto found = stats::estimate_process_effect(blocks);
  if (!std::isfinite(found.sigma))
    return fail("calibration: the process effect could not be estimated from these blocks",
                "run it again on an idle machine");
  store::ProcessEffect effect{machine_key(machine), utc_now(), threads, found.sigma, found.low, found.high, {}};
  effect.detail = {{"level", job.level.id},
                   {"case", job.bundle->info.value("id", "")},
                   {"instances", found.instances},
                   {"sessions", found.sessions},
                   {"rounds", {blocks[0].size(), blocks[1].size()}}};
  return effect;
}

std::string machine_key(const Json& machine) {
  const auto part = [&](const char* name) { return machine.contains(name) ? machine[name].dump() : std::string(); };
  return part("cpu") + part("cores") + part("memory_bytes");
}

Result<ProcessSigma> process_sigma(const store::Store& store, const Json& machine, int threads) {
  const auto effect = store.find_effect(machine_key(machine), threads);
  if (!effect) return tl::unexpected(effect.error());
  if (*effect) return ProcessSigma{(*effect)->sigma, "calibrated " + (*effect)->measured.substr(0, 10)};
  return ProcessSigma{stats::assumed_process_sigma(threads), "assumed"};
}

}  // namespace strata::measure
