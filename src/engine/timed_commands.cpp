// SPDX-License-Identifier: Apache-2.0
#include "engine/timed_commands.hpp"

#include <fmt/format.h>
#include <wordexp.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <random>

#include "common/interrupt.hpp"
#include "common/places.hpp"
#include "common/scratch_folder.hpp"
#include "probe/load.hpp"
#include "probe/machine.hpp"
#include "stats/schedule.hpp"
#include "worker/process.hpp"

namespace strata::engine {
namespace {

using analysis::TimedCommand;
using analysis::TimedCommands;
using requests::CommandsRequest;
using Clock = std::chrono::steady_clock;

constexpr double kBlockNs = 5e6;  // of a server: shorter ones are mostly the asking
constexpr std::int64_t kMostIterations = 1'000'000'000;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Its words where they are plain, so that no shell is timed with it; what only a shell understands (pipes, variables
// that are set, `&&`) goes to one. Empty: it has no words.
std::vector<std::string> words_of(const std::string& command) {
  wordexp_t found{};
  const int failed = ::wordexp(command.c_str(), &found, WRDE_NOCMD | WRDE_UNDEF);
  if (failed != 0) return {"/bin/sh", "-c", command};
  std::vector<std::string> words(found.we_wordv, found.we_wordv + found.we_wordc);
  ::wordfree(&found);
  const bool assigns = !words.empty() && words.front().find('=') < words.front().find('/');
  if (assigns) return {"/bin/sh", "-c", command};
  return words;
}

// Why a run has no time.
struct Trouble {
  State state;
  std::string reason;
};

struct Run {
  double wall_ns = 0, processor_ns = 0;
  std::uint64_t peak_bytes = 0;
};

Trouble trouble_of(const worker::Failure& failure) {
  return {failure.state, failure.hint.empty() ? failure.what : failure.what + "; " + failure.hint};
}

// What a process said last, behind how it ended.
Trouble ended_early(worker::Process& process) {
  const auto exited = process.exited().value_or(worker::ExitStatus{});
  auto reason = worker::describe(exited);
  if (const auto said = process.log_tail(3); !said.empty()) reason += ": " + said;
  return {exited.signal ? State::crashed : State::failed, reason};
}

class Measuring {
 public:
  Measuring(const CommandsRequest& request, EventSink& events) : request_(request), events_(events) {
    for (std::size_t i = 0; i < request.commands.size(); ++i) {
      words_.push_back(words_of(request.commands[i]));
      TimedCommand command;
      command.name = request.names.empty() ? request.commands[i] : request.names[i];
      timed_.commands.push_back(std::move(command));
    }
    timeout_ = std::chrono::milliseconds(static_cast<std::int64_t>(1e3 * request.timeout_s));
  }

  TimedCommands measured() {
    probe::LoadMeter load;
    timed_.began_at = utc_now();
    if (request_.served)
      measure_servers();
    else
      measure_runs();
    if (const auto seen = load.lap()) timed_.others = seen->taken();
    const auto cpu = probe::cpu();
    timed_.cores = cpu.physical;
    timed_.processors = cpu.logical;
    timed_.cpu = cpu.model;
    for (auto& command : timed_.commands)
      if (command.state == State::measured && command.wall_ns.empty())
        leave_out(command, {State::failed, "interrupted before its first run"});
    return std::move(timed_);
  }

 private:
  static void leave_out(TimedCommand& command, Trouble trouble) {
    command.state = trouble.state;
    command.reason = std::move(trouble.reason);
  }

  bool goes_on() const {
    const bool any = std::any_of(timed_.commands.begin(), timed_.commands.end(),
                                 [](const TimedCommand& command) { return command.state == State::measured; });
    return any && !interrupted();
  }

  // `log`: the name of its log, which begins anew.
  worker::Launch launch_of(const std::vector<std::string>& words, const std::string& log, bool discards) const {
    const auto& folder = folder_.path();
    worker::Launch launch{.argv = words,
                          .env = {},
                          .log_path = folder.empty() ? std::string() : (folder / log).string(),
                          .data_limit_bytes = {},
                          .cpus = {}};
    launch.discards_output = discards;
    return launch;
  }

  // One run from its start to its end; its standard output is thrown away.
  tl::expected<Run, Trouble> run(const std::vector<std::string>& words) const {
    const auto begin = Clock::now();
    auto process = worker::Process::spawn(launch_of(words, "run", true), false);
    if (!process) return tl::unexpected(trouble_of(process.error()));
    worker::ActiveTimeout timeout(timeout_);
    const auto waited = (*process)->wait_end(timeout);
    Run run;
    run.wall_ns = 1e9 * seconds_since(begin);
    (*process)->kill_and_reap();
    if (waited == worker::Wait::timed_out)
      return tl::unexpected(
          Trouble{State::timeout, fmt::format("it ran longer than {:g} s (--timeout)", request_.timeout_s)});
    if (waited == worker::Wait::interrupted) return tl::unexpected(Trouble{State::failed, "interrupted"});
    const auto exited = (*process)->exited().value_or(worker::ExitStatus{});
    if (exited.signal || exited.code != 0) return tl::unexpected(ended_early(**process));
    run.processor_ns = static_cast<double>((*process)->processor_time().count());
    run.peak_bytes = (*process)->peak_bytes();
    return run;
  }

  // The set-up, then a run; nothing where it has failed before, or Ctrl-C came.
  std::optional<Run> turn(std::size_t i) {
    auto& command = timed_.commands[i];
    if (command.state != State::measured || interrupted()) return std::nullopt;
    if (!request_.setup.empty()) {
      if (const auto prepared = run(words_of(request_.setup)); !prepared && !interrupted()) {
        leave_out(command, {prepared.error().state, "--setup: " + prepared.error().reason});
        return std::nullopt;
      }
    }
    const auto done = run(words_[i]);
    if (!done && !interrupted()) leave_out(command, done.error());
    return done ? std::optional<Run>(*done) : std::nullopt;
  }

  void measure_runs() {
    for (int round = 0; round < request_.warmup && goes_on(); ++round) {
      events_.progress(fmt::format("warm-up, run {} of {}", round + 1, request_.warmup), -1);
      for (std::size_t i = 0; i < words_.size(); ++i) turn(i);
    }
    stats::Schedule schedule(static_cast<int>(words_.size()), std::random_device{}(), 1);
    const auto begin = Clock::now();
    for (int round = 0; goes_on() && is_wanted(round, seconds_since(begin)); ++round) {
      events_.progress(fmt::format("measuring, round {}", round + 1), left_s(round, seconds_since(begin)));
      std::vector<double> times(words_.size(), stats::nan);
      for (const int i : schedule.next()) {
        const auto at = static_cast<std::size_t>(i);
        const auto done = turn(at);
        if (!done) continue;
        auto& command = timed_.commands[at];
        times[at] = done->wall_ns;
        command.wall_ns.push_back(done->wall_ns);
        command.processor_ns.push_back(done->processor_ns);
        command.peak_bytes = std::max(command.peak_bytes, done->peak_bytes);
      }
      timed_.blocks.push_back({times});
    }
  }

  bool is_wanted(int round, double measured_s) const {
    if (request_.runs > 0) return round < request_.runs;
    return round < kFewestRuns || measured_s + measured_s / round <= request_.budget_s;
  }

  double left_s(int round, double measured_s) const {
    if (request_.runs > 0) return round == 0 ? -1 : measured_s / round * (request_.runs - round);
    return std::max(0.0, request_.budget_s - measured_s);
  }

  // ---- servers ------------------------------------------------------------------------------------------------------

  using Server = std::unique_ptr<worker::Process>;

  // The next line that it prints.
  tl::expected<std::string, Trouble> line_of(worker::Process& process) const {
    worker::ActiveTimeout timeout(timeout_);
    while (true) {
      if (auto line = process.take_line()) return *line;
      const auto waited = process.wait_output(timeout);
      if (waited == worker::Wait::interrupted) return tl::unexpected(Trouble{State::failed, "interrupted"});
      if (waited == worker::Wait::timed_out)
        return tl::unexpected(
            Trouble{State::timeout, fmt::format("no answer within {:g} s (timeout_s)", request_.timeout_s)});
      if (process.output_closed() && process.pending().empty()) {
        worker::ActiveTimeout soon{std::chrono::seconds(2)};
        process.wait_end(soon);
        return tl::unexpected(ended_early(process));
      }
    }
  }

  // Wall time of so many iterations, ns.
  tl::expected<double, Trouble> ask(worker::Process& process, std::int64_t iterations) const {
    worker::ActiveTimeout timeout(timeout_);
    process.write_all(fmt::format("{}\n", iterations), timeout);
    const auto line = line_of(process);
    if (!line) return tl::unexpected(line.error());
    double ns = 0;
    const auto [end, failed] = std::from_chars(line->data(), line->data() + line->size(), ns);
    if (failed != std::errc() || !std::isfinite(ns) || ns <= 0)
      return tl::unexpected(Trouble{State::failed, "it answered " + worker::printable(*line, 100) + ", not with ns"});
    return ns;
  }

  // How many iterations make a block.
  tl::expected<std::int64_t, Trouble> iterations_of(worker::Process& process) const {
    for (std::int64_t iterations = 1;; iterations *= 2) {
      const auto took = ask(process, iterations);
      if (!took) return tl::unexpected(took.error());
      if (*took >= kBlockNs || iterations >= kMostIterations) return iterations;
    }
  }

  Server started(std::size_t i) {
    auto& command = timed_.commands[i];
    if (command.state != State::measured) return nullptr;
    auto process = worker::Process::spawn(launch_of(words_[i], fmt::format("server-{}", i), false), true);
    if (!process) {
      leave_out(command, trouble_of(process.error()));
      return nullptr;
    }
    auto ready = line_of(**process);
    for (int run = 0; ready && run < request_.warmup; ++run)
      if (const auto took = ask(**process, 1); !took) ready = tl::unexpected(took.error());
    if (ready && iterations_[i] == 0) {
      if (const auto found = iterations_of(**process))
        iterations_[i] = *found;
      else
        ready = tl::unexpected(found.error());
    }
    if (ready) return std::move(*process);
    if (!interrupted()) leave_out(command, ready.error());
    return nullptr;
  }

  void measure_servers() {
    iterations_.assign(words_.size(), 0);
    const int restarts = request_.runs > 0 ? request_.runs : kServerRestarts;
    stats::Schedule schedule(static_cast<int>(words_.size()), std::random_device{}());
    for (int restart = 0; restart < restarts && goes_on(); ++restart) {
      events_.progress(fmt::format("starting processes, {} of {}", restart + 1, restarts),
                       request_.budget_s * (restarts - restart) / restarts);
      std::vector<Server> servers;
      for (std::size_t i = 0; i < words_.size(); ++i) servers.push_back(started(i));
      events_.progress(fmt::format("measuring, restart {} of {}", restart + 1, restarts),
                       request_.budget_s * (restarts - restart) / restarts);
      measure_restart(servers, schedule, request_.budget_s / restarts);
    }
  }

  void measure_restart(std::vector<Server>& servers, stats::Schedule& schedule, double budget_s) {
    const auto begin = Clock::now();
    timed_.blocks.emplace_back();
    for (int round = 0; goes_on() && (round < kFewestRuns || seconds_since(begin) < budget_s); ++round) {
      std::vector<double> times(servers.size(), stats::nan);
      for (const int i : schedule.next()) {
        const auto at = static_cast<std::size_t>(i);
        if (servers[at] == nullptr || interrupted()) continue;
        const auto took = ask(*servers[at], iterations_[at]);
        if (!took) {
          if (!interrupted()) leave_out(timed_.commands[at], took.error());
          servers[at].reset();
          continue;
        }
        times[at] = *took / static_cast<double>(iterations_[at]);
        timed_.commands[at].wall_ns.push_back(times[at]);
      }
      timed_.blocks.back().push_back(std::move(times));
    }
  }

  const CommandsRequest& request_;
  EventSink& events_;
  ScratchFolder folder_{"commands"};
  std::chrono::milliseconds timeout_{};
  std::vector<std::vector<std::string>> words_;
  std::vector<std::int64_t> iterations_;
  TimedCommands timed_;
};

}  // namespace

Result<TimedCommands> time_commands(const CommandsRequest& request, EventSink& events) {
  if (request.commands.size() < 2)
    return fail(fmt::format("--command names {}; a comparison needs two or more",
                            request.commands.empty() ? "no command" : "one command"),
                "give the others behind it: --command 'build/a' 'build/b'", Exit::usage,
                {"--command", std::to_string(request.commands.size()), "2 or more"});
  if (!request.names.empty() && request.names.size() != request.commands.size())
    return fail(fmt::format("there are {} commands and {} names", request.commands.size(), request.names.size()),
                "give a name for each, or none", Exit::usage,
                {"names", std::to_string(request.names.size()), std::to_string(request.commands.size())});
  for (const auto& command : request.commands)
    if (words_of(command).empty())
      return fail(fmt::format("\"{}\" is no command", command), "give a program with its arguments", Exit::usage,
                  {"--command", command, {}});
  return Measuring(request, events).measured();
}

int exit_code_of(const TimedCommands& timed) {
  const bool all = std::all_of(timed.commands.begin(), timed.commands.end(),
                               [](const TimedCommand& command) { return command.state == State::measured; });
  return static_cast<int>(all ? Exit::ok : Exit::failed);
}

}  // namespace strata::engine
