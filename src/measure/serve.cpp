// SPDX-License-Identifier: Apache-2.0
#include "measure/serve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <future>

#include "common/interrupt.hpp"
#include "common/monotonic.hpp"
#include "probe/machine.hpp"
#include "probe/memory.hpp"
#include "run/criteria.hpp"
#include "run/interleaver.hpp"
#include "stats/schedule.hpp"

namespace strata::measure {
namespace {

constexpr int kSamples = 2048;          // requests whose times are kept, of one repetition and all its clients
constexpr int kMostChecks = 32;         // results of one client and repetition that are kept and judged
constexpr double kCheckedBytes = 64e6;  // of all results that a worker keeps at once
constexpr auto kWarm = std::chrono::milliseconds(300);  // served before what is measured; memory is read meanwhile
constexpr auto kSampleEvery = std::chrono::milliseconds(20);
constexpr int kAttempts = 3;  // to have a point's clients at the same time

// One number of clients of one level.
struct Point {
  int clients = 1;
  bool processes = false;
  State state = State::measured;
  std::string reason{}, hint{};
  std::vector<store::ServedRepetition> repetitions{};
  void fail(const Failure& why) { std::tie(state, reason, hint) = std::tuple(why.state, why.what, why.hint); }
};

struct Served {
  Participant* participant;
  std::vector<Point> points;

  bool serves() const {
    return std::any_of(points.begin(), points.end(), [](const Point& point) { return point.state == State::measured; });
  }
};

struct Memory {
  std::uint64_t private_bytes = 0, pss_bytes = 0;
};

// How many results a client may keep without filling the memory.
int checks_of(const Json& info, int clients) {
  double bytes = 0;
  for (const auto& output : info.value("outputs", Json::array())) {
    double elements = 8;
    for (const auto& size : output.value("shape", Json::array())) elements *= size.get<double>();
    bytes += elements;
  }
  return std::clamp(static_cast<int>(kCheckedBytes / std::max(1.0, bytes * clients)), 1, kMostChecks);
}

class Serving {
 public:
  Serving(const proof::Reference& reference, const ServePlan& plan, const Progress& progress)
      : reference_(reference), plan_(plan), progress_(progress), random_(plan.seed) {
    const auto cores = probe::cpu().one_per_core;
    if (static_cast<std::size_t>(plan.threads) <= cores.size())
      cpus_.assign(cores.begin(), cores.begin() + plan.threads);
  }
  void in_threads(Served& served, int repetition);
  void in_processes(Served& served, int repetition);

 private:
  Try<std::unique_ptr<Session>> start(const Participant& participant);
  Try<Memory> watch(std::vector<std::unique_ptr<Session>>& sessions, const session::ServeRequest& request);
  Try<std::vector<session::ServeAnswer>> ask(std::vector<std::unique_ptr<Session>>& sessions,
                                             session::ServeRequest request);
  Try<store::ServedRepetition> measure(const Participant& participant, std::vector<std::unique_ptr<Session>>& sessions,
                                       const Point& point);
  Try<std::optional<store::ServedRepetition>> serve_once(const Participant& participant,
                                                         std::vector<std::unique_ptr<Session>>& sessions,
                                                         const Point& point, const session::ServeRequest& request);
  std::optional<Failure> judge(const Participant& participant, const session::ServeAnswer& answer, int clients) const;
  int threads_each(int clients) const { return std::max(1, plan_.threads / clients); }
  void say(const Participant& participant, const Point& point, int repetition) const {
    progress_.status(fmt::format("repetition {} of {}: {} with {} {}", repetition + 1, plan_.repetitions,
                                 participant.name(), point.clients, point.processes ? "processes" : "clients"),
                     -1);
  }

  const proof::Reference& reference_;
  const ServePlan& plan_;
  const Progress& progress_;
  stats::Random random_;
  std::vector<int> cpus_;  // the same for every worker; empty: all
};

Try<std::unique_ptr<Session>> Serving::start(const Participant& participant) {
  auto session = Session::open(participant.job, cpus_);
  if (!session) return session;
  if (!(*session)->offers("serve"))
    return tl::unexpected(
        Failure{.state = State::unsupported,
                .what = "the level does not support several clients at once: it has no operation `serve`",
                .hint = "docs/add_a_level.md says how it would"});
  STRATA_TRY((*session)->load("timed"));
  STRATA_TRY((*session)->warm_up(3, std::chrono::milliseconds(100)));
  auto proven = STRATA_TRY((*session)->prove({0, 1}));
  const auto verdict =
      proof::check_outputs(reference_, "timed", proven, std::vector<int>{0, 1}, participant.tolerance());
  if (!verdict.equal_work()) return tl::unexpected(Failure{.state = state_of(verdict), .what = verdict.reason});
  return session;
}

// Every result that was kept must be that of its input: a level that was proven alone and is wrong here mixes its
// callers up.
std::optional<Failure> Serving::judge(const Participant& participant, const session::ServeAnswer& answer,
                                      int clients) const {
  std::optional<Failure> wrong;
  for (const auto& [index, file] : answer.checked) {
    const auto tensors = SafeTensors::open(file);
    if (!tensors && !wrong) wrong = worker::failed_by(tensors.error());
    if (tensors && !wrong) {
      const auto verdict =
          proof::check_outputs(reference_, "timed", *tensors, std::vector<int>{index}, participant.tolerance());
      if (!verdict.equal_work())
        wrong = Failure{.state = State::mistrusted,
                        .what = fmt::format("with {} requests in flight: {}", clients, verdict.reason),
                        .hint = "its callers share what each must have for itself"};
    }
    std::error_code ec;
    std::filesystem::remove(file, ec);
  }
  return wrong;
}

// All workers at once: one answer each.
Try<std::vector<session::ServeAnswer>> Serving::ask(std::vector<std::unique_ptr<Session>>& sessions,
                                                    session::ServeRequest request) {
  std::vector<std::future<Try<session::ServeAnswer>>> pending;
  if (sessions.size() > 1)
    request.begin_ns = monotonic_ns() + 300'000'000;  // all are warm; the system wakes them up meanwhile
  for (auto& session : sessions) {
    request.seed = random_.next();
    pending.push_back(
        std::async(std::launch::async, [client = session.get(), request] { return client->serve(request); }));
  }
  std::vector<session::ServeAnswer> answers;
  std::optional<Failure> wrong;
  for (auto& element : pending) {
    auto answer = element.get();
    if (!answer && !wrong) wrong = answer.error();
    if (answer) answers.push_back(std::move(*answer));
  }
  if (wrong) return tl::unexpected(*wrong);
  return answers;
}

// Serves for a moment, unmeasured: what runs for the first time is warm afterwards, and reading memory disturbs
// nothing.
Try<Memory> Serving::watch(std::vector<std::unique_ptr<Session>>& sessions, const session::ServeRequest& request) {
  session::ServeRequest brief = request;
  brief.at_least = kWarm;
  brief.checks = 0;
  std::vector<std::unique_ptr<probe::PeakSampler>> samplers;
  for (auto& session : sessions)
    samplers.push_back(std::make_unique<probe::PeakSampler>(session->process().pid(), kSampleEvery));
  auto answers = ask(sessions, brief);
  Memory sum;
  for (auto& sampler : samplers)
    if (const auto peak = sampler->stop()) {
      sum.private_bytes += peak->private_bytes;
      sum.pss_bytes += peak->pss_bytes;
    }
  if (!answers) return tl::unexpected(answers.error());
  return sum;
}

Try<store::ServedRepetition> Serving::measure(const Participant& participant,
                                              std::vector<std::unique_ptr<Session>>& sessions, const Point& point) {
  session::ServeRequest request;
  request.clients = point.processes ? 1 : point.clients;
  request.threads = threads_each(point.clients);
  request.at_least = std::chrono::nanoseconds(static_cast<std::int64_t>(plan_.seconds / plan_.repetitions * 1e9));
  request.samples = std::max(64, kSamples / point.clients);
  request.checks = checks_of(participant.job.bundle->info, point.clients);
  const auto memory = STRATA_TRY(watch(sessions, request));
  // What starts late by chance, weighs half as much in twice the time.
  for (int attempt = 0; attempt < kAttempts && !interrupted(); ++attempt, request.at_least *= 2) {
    auto measured = STRATA_TRY(serve_once(participant, sessions, point, request));
    if (!measured) continue;
    measured->private_bytes = static_cast<std::int64_t>(memory.private_bytes);
    measured->pss_bytes = static_cast<std::int64_t>(memory.pss_bytes);
    return std::move(*measured);
  }
  return tl::unexpected(
      Failure{.state = State::failed,
              .what = "its clients did not run at the same time: less than 90% of some client's time is common to all",
              .hint = "repeat on a quieter machine, or with a longer --budget"});
}

// nullopt: its clients did not run at the same time.
Try<std::optional<store::ServedRepetition>> Serving::serve_once(const Participant& participant,
                                                                std::vector<std::unique_ptr<Session>>& sessions,
                                                                const Point& point,
                                                                const session::ServeRequest& request) {
  auto answers = STRATA_TRY(ask(sessions, request));
  std::vector<stats::ClientTimes> clients;
  std::optional<Failure> wrong;
  std::int64_t requests = 0, cpu_ns = 0;
  bool has_cpu = true;
  for (const auto& answer : answers) {
    if (auto why = judge(participant, answer, point.clients); why && !wrong) wrong = std::move(why);
    clients.insert(clients.end(), answer.clients.begin(), answer.clients.end());
    has_cpu = has_cpu && answer.cpu_ns.has_value();
    cpu_ns += answer.cpu_ns.value_or(0);
  }
  if (wrong) return tl::unexpected(*wrong);
  for (const auto& client : clients) requests += client.requests;
  const auto together = stats::in_common(clients);
  if (!together) return std::nullopt;
  return store::ServedRepetition{.requests_per_s = together->requests_per_s,
                                 .requests = requests,
                                 .cpu_ns = has_cpu ? std::optional(cpu_ns) : std::nullopt,
                                 .latency_ns = together->latency_ns};
}

// One process; from few clients to many, so that memory grows as it would.
void Serving::in_threads(Served& served, int repetition) {
  std::vector<std::unique_ptr<Session>> session;
  for (auto& point : served.points) {
    if (point.processes || point.state != State::measured || interrupted()) continue;
    say(*served.participant, point, repetition);
    if (session.empty()) {
      auto started = start(*served.participant);
      if (!started) {
        point.fail(started.error());
        continue;
      }
      session.push_back(std::move(*started));
    }
    auto measured = measure(*served.participant, session, point);
    if (measured)
      point.repetitions.push_back(std::move(*measured));
    else if (!interrupted())
      point.fail(measured.error());
    if (!session.front()->process().alive()) session.clear();
  }
  if (!session.empty() && !interrupted()) session.front()->end();
}

void Serving::in_processes(Served& served, int repetition) {
  for (auto& point : served.points) {
    if (!point.processes || point.state != State::measured || interrupted()) continue;
    say(*served.participant, point, repetition);
    const auto needed = static_cast<double>(served.participant->peak_bytes) * point.clients,
               free = static_cast<double>(probe::memory().available_bytes);
    if (needed > 0.85 * free) {
      point.fail({.state = State::out_of_memory,
                  .what = fmt::format("{} processes need {:.1f} GB, {:.1f} GB are free", point.clients, needed * 1e-9,
                                      free * 1e-9),
                  .hint = "fewer --clients"});
      continue;
    }
    std::vector<std::unique_ptr<Session>> sessions;
    for (int i = 0; i < point.clients && point.state == State::measured && !interrupted(); ++i) {
      auto started = start(*served.participant);
      if (!started) {
        point.fail(started.error());
      } else {
        (*started)->process().pause();  // while the others load
        sessions.push_back(std::move(*started));
      }
    }
    if (point.state != State::measured || interrupted()) continue;
    auto measured = measure(*served.participant, sessions, point);
    if (measured)
      point.repetitions.push_back(std::move(*measured));
    else if (!interrupted())
      point.fail(measured.error());
  }
}

store::ServedClients record(const Served& served, const ServePlan& plan, bool& failed) {
  store::ServedClients clients{.seconds = plan.seconds, .cores = plan.threads};
  for (const auto& point : served.points) {
    State state = point.state;
    std::string reason = point.reason;
    if (state == State::measured && point.repetitions.empty())
      std::tie(state, reason) = std::tuple(State::failed, std::string("interrupted before it was measured"));
    failed = failed || (state != State::measured && state != State::unsupported && state != State::unavailable);
    clients.points.push_back({.clients = point.clients,
                              .threads_each = std::max(1, plan.threads / point.clients),
                              .as = point.processes ? "processes" : "threads",
                              .state = std::string(to_string(state)),
                              .reason = reason,
                              .hint = point.hint,
                              .repetitions = point.repetitions});
  }
  return clients;
}

}  // namespace

Result<bool> serve_clients(std::vector<Participant>& participants, const proof::Reference& reference,
                           const ServePlan& plan, const Progress& progress) {
  std::vector<Served> all;
  for (auto& participant : participants) {
    if (!participant.active || participant.row.blocks.empty() || participant.job.level.harness) continue;
    Served result{&participant, {}};
    for (const int clients : plan.clients) result.points.push_back({.clients = clients});
    for (const int clients : plan.clients)
      if (clients > 1 && participant.job.level.language == "python")
        result.points.push_back({.clients = clients, .processes = true});
    all.push_back(std::move(result));
  }
  Serving serving(reference, plan, progress);
  // A repetition is a restart with one turn of each level, alone on its cores.
  std::vector<run::OnlyTurns> turns;
  turns.reserve(all.size());
  std::vector<std::vector<run::Executor*>> groups;
  for (auto& element : all)
    groups.push_back({&turns.emplace_back(
        element.participant->name(), [&element] { return element.serves(); },
        [&serving, &element](const run::Turn& turn) {
          serving.in_threads(element, turn.restart);
          serving.in_processes(element, turn.restart);
        })});
  run::StopByTime one_round(0, 1);
  run::Sink nobody;
  STRATA_TRY(run::Interleaver({.seed = plan.seed, .restarts = plan.repetitions}, one_round, nullptr, nobody)
                 .run(std::move(groups)));
  bool failed = false;
  for (auto& element : all) {
    element.participant->row.info.clients = record(element, plan, failed);
    for (const auto& point : element.points)
      if (point.state != State::measured)
        progress.note(fmt::format("{} with {} {}: {}: {}", element.participant->name(), point.clients,
                                  point.processes ? "processes" : "clients", to_string(point.state), point.reason));
  }
  return failed;
}

}  // namespace strata::measure
