// SPDX-License-Identifier: Apache-2.0
#include "measure/isolated.hpp"

#include <fmt/format.h>

#include <fstream>
#include <numeric>

#include "common/interrupt.hpp"
#include "common/outside.hpp"
#include "common/places.hpp"
#include "measure/train.hpp"
#include "probe/huge_pages.hpp"
#include "probe/memory.hpp"
#include "proof/special_values.hpp"
#include "stats/sample.hpp"

namespace strata::measure {
namespace {

constexpr auto kSampleAloneEvery = std::chrono::milliseconds(5);

Try<std::unique_ptr<Session>> open_alone(const Participant& participant) {
  return Session::open(participant.job, {});
}

// What the level says of its settings, and what the kernel gives it besides.
void note_settings(Participant& participant, const Session& session) {
  auto& settings = participant.row.settings = session.loaded().value("settings", Json::object());
  if (const auto mode = probe::huge_pages().mode; !mode.empty()) settings["huge_pages"] = mode;
}

// What memory the level needs, host side observed by the driver. The sampler has run since the worker said hello.
void note_memory(Participant& participant, Session& session, std::uint64_t idle, probe::PeakSampler& sampler) {
  const auto steady = probe::process_memory(session.process().pid());
  const auto peak = sampler.stop();
  const auto own = session.memory();
  if (!steady || !peak) return;
  participant.peak_bytes = peak->private_bytes;
  participant.row.settings["huge_page_bytes"] = steady->huge_page_bytes;
  const auto bytes = [](std::uint64_t count) { return static_cast<std::int64_t>(count); };
  participant.row.memory = store::MemoryFacts{
      .idle_private_bytes = bytes(idle),
      .steady_private_bytes = bytes(steady->private_bytes),
      .peak_private_bytes = bytes(peak->private_bytes),
      .steady_pss_bytes = bytes(steady->pss_bytes),
      .above_idle_bytes = bytes(peak->private_bytes > idle ? peak->private_bytes - idle : 0),
      .shared_file_bytes = bytes(steady->shared_file_bytes),
      .device_peak_bytes = own ? outside::as_integer(outside::field(*own, "device_peak_bytes")) : std::nullopt};
}

// What must be shipped beside the artefact: the code that the process really mapped. The artefact's own code (a
// compiled package) is counted there.
void note_libraries(Participant& participant, Session& session) {
  store::Libraries all;
  for (const auto& library : probe::own_libraries(session.process().pid())) {
    if (library.path.starts_with(participant.job.cache.string())) continue;
    const auto bytes = static_cast<std::int64_t>(library.bytes);
    all.bytes += bytes;
    all.files.push_back({std::filesystem::path(library.path).filename().string(), bytes});
  }
  if (!all.files.empty()) participant.row.info.libraries = std::move(all);
}

// Whether a level left anything in its cache that makes its next start another one.
bool keeps_artefacts(const std::filesystem::path& cache) {
  std::error_code ec;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(cache, ec))
    if (entry.is_regular_file(ec) && entry.path().filename() != "warm.json") return true;
  return false;
}

// The first start ever of an artefact, kept beside it. What making it took stands there too, whichever run, case or
// export made it.
void note_first_start(const Job& job, const session::StartUp& start) {
  if (!start.cold) return;
  const auto prepared = outside::read_file(job.cache / "prepared.json");
  const double prepare_ms = prepared ? outside::number_or(*prepared, "ms") : 0.0;
  std::ofstream(job.cache / "warm.json")
      << Json{{"total_ms", start.total_ms() + prepare_ms}, {"prepare_ms", prepare_ms}}.dump() << '\n';
}

// Loads and runs once; memory is watched. The first time ever (an empty cache) it starts again, so that memory and
// start-up from caches are seen too.
Try<std::unique_ptr<Session>> start_and_watch(Participant& participant) {
  for (;;) {
    auto opened = open_alone(participant);
    if (!opened) return opened;
    auto session = std::move(*opened);
    const auto pid = session->process().pid();
    const auto idle = probe::process_memory(pid);
    probe::PeakSampler sampler(pid, kSampleAloneEvery);
    STRATA_TRY(session->load("timed"));
    STRATA_TRY(session->warm_up(1, std::chrono::nanoseconds(0)));
    auto walls = STRATA_TRY(session->warm_up(5, std::chrono::milliseconds(200)));
    participant.iteration_ns = stats::median(std::vector<double>(walls.begin(), walls.end()));
    session::StartUp start = session->start_up();
    note_first_start(participant.job, start);
    start.cold = start.cold && keeps_artefacts(participant.job.cache);
    participant.add_start(start, -1);
    if (start.cold) {
      session->end();
      continue;
    }
    note_settings(participant, *session);
    note_memory(participant, *session, idle ? idle->private_bytes : 0, sampler);
    return session;
  }
}

// The same in a process that goes on with other cases: what it has of memory and start is not this case's alone.
Try<std::unique_ptr<Session>> take_warm(Participant& participant, session::WarmProcesses& warm,
                                        const std::vector<int>& cpus) {
  auto session = warm.open(participant.job, cpus);
  if (!session) return session;
  STRATA_TRY((*session)->load("timed"));
  const auto walls = STRATA_TRY((*session)->warm_up(2, std::chrono::nanoseconds(0)));
  participant.iteration_ns = static_cast<double>(walls.back());
  note_settings(participant, **session);
  return session;
}

std::vector<int> whole_ring(const Participant& participant) {
  std::vector<int> all(static_cast<std::size_t>(participant.job.bundle->info.value("ring", 0)));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// Proves one weight set.
Try<void> prove_set(Participant& participant, Session& session, const ProofReferences& judge, const std::string& set,
                    const std::vector<int>& indices) {
  const auto outputs = STRATA_TRY(session.prove(indices));
  const auto verdict = proof::check_outputs(*judge.outputs, set, outputs, indices, participant.tolerance());
  participant.verdicts(judge)[set] = verdict;
  if (set != "timed" || !verdict.equal_work()) return {};
  if (judge.strict)
    participant.evidence.precision = proof::precision_share(*judge.strict, *judge.outputs, set, outputs, indices);
  const auto accuracy = proof::accuracy_of(*judge.outputs, set, outputs, indices);
  participant.row.info.accuracy = store::Accuracy{accuracy.error, accuracy.answers, accuracy.differ};
  return {};
}

// A level that is not deterministic says so; how far its own runs part joins the envelope (docs/proof.md).
Try<void> measure_spread(Participant& participant, Session& session, const proof::Reference& reference,
                         const std::vector<int>& indices) {
  std::vector<SafeTensors> runs;
  for (int i = 0; i < 8; ++i) {
    auto outputs = STRATA_TRY(session.prove(indices));
    runs.push_back(std::move(outputs));
  }
  participant.evidence.own_spread = proof::spread_of(reference, runs, indices);
  return {};
}

Try<void> read_back(Participant& participant, Session& session, const std::string& set) {
  const auto hashes = STRATA_TRY(session.read_weights());
  if (hashes.is_object())
    for (const auto& [name, hash] : hashes.items())
      if (hash.is_string()) participant.evidence.read_back[set][name] = hash.get<std::string>();
  return {};
}

// The loaded level's outputs of all weight sets; the timed set is loaded. False: interrupted.
Try<bool> prove_sets(Participant& participant, Session& session, const ProofReferences& judge) {
  const auto all = whole_ring(participant);
  if (!session.loaded().value("deterministic", true))
    STRATA_TRY(measure_spread(participant, session, *judge.outputs, all));
  const bool reads = !judge.strict;  // in another precision weights are rounded, and not the file's bytes any more
  STRATA_TRY(prove_set(participant, session, judge, "timed", all));
  if (reads) STRATA_TRY(read_back(participant, session, "timed"));
  for (const std::string& set : judge.outputs->generic_sets()) {
    if (interrupted()) return false;
    STRATA_TRY(session.weights(set));
    STRATA_TRY(prove_set(participant, session, judge, set, {0, 1}));
    if (reads) STRATA_TRY(read_back(participant, session, set));
  }
  return true;
}

// What the level says and computes. False: interrupted.
Try<bool> prove_loaded(Participant& participant, Session& session, const ProofReferences& judge) {
  if (const auto bytes = session.loaded().find("artefact_bytes");
      bytes != session.loaded().end() && bytes->is_number_integer())
    participant.row.artefact_bytes = bytes->get<std::int64_t>();
  participant.evidence.load = session.loaded();
  if (participant.job.level.harness) return true;
  if (!judge.training) return prove_sets(participant, session, judge);
  STRATA_TRY(prove_training(participant, session, judge));
  // Loaded once more: after a training step a level holds other weights than the file's.
  for (const std::string set : {"probe1", "timed"}) {
    STRATA_TRY(session.weights(set));
    STRATA_TRY(read_back(participant, session, set));
  }
  return true;
}

}  // namespace

// How the level answers inputs that hold a NaN or an infinity. What it raises on them is no fault.
void ask_specials(Participant& participant, Session& session) {
  const auto& folder = participant.job.bundle->folder;
  const auto answers = proof::special_answers(folder);
  if (!there_is(answers)) return;
  const auto expected = SafeTensors::map(answers);
  if (!expected || !session.inputs(proof::special_inputs(folder), 2)) return;
  if (const auto actual = session.prove({0, 1}))
    participant.evidence.specials = proof::lost_specials(*expected, *actual);
}

void run_alone(Participant& participant, const ProofReferences& judge, const Progress& progress) {
  progress.status(fmt::format("proving {}", participant.job.level.name()), -1);
  auto opened = start_and_watch(participant);
  if (!opened) return participant.drop(opened.error());
  Session& session = **opened;
  const auto proven = prove_loaded(participant, session, judge);
  if (!proven) return participant.drop(proven.error());
  if (!*proven) return;
  if (!participant.job.level.harness) note_libraries(participant, session);
  if (!participant.job.level.harness && !judge.training)
    if (auto facts = session.report(); facts && facts->is_object()) participant.row.info.facts = std::move(*facts);
  if (!participant.job.level.harness && !judge.training && !judge.strict) ask_specials(participant, session);
  session.end();
}

void prove_warm(Participant& participant, const ProofReferences& judge, session::WarmProcesses& warm,
                const std::vector<int>& cpus, const Progress& progress) {
  progress.status(fmt::format("proving {}", participant.job.level.name()), -1);
  auto opened = take_warm(participant, warm, cpus);
  if (!opened) return participant.drop(opened.error());
  const auto proven = prove_loaded(participant, **opened, judge);
  if (!proven) return participant.drop(proven.error());
  if (!*proven || !participant.active) return;
  (*opened)->note_proven();
  warm.keep(std::move(*opened));
}

void prove_structure(Participant& participant, const Job& strict, const ProofReferences& judge,
                     const Progress& progress) {
  if (participant.job.level.harness) return;
  progress.status(fmt::format("proving {} in strict float32", participant.job.level.name()), -1);
  auto opened = Session::open(strict, {});
  if (!opened) return participant.drop(opened.error());
  Session& session = **opened;
  if (auto done = session.load("timed"); !done) return participant.drop(done.error());
  if (auto done = session.warm_up(1, std::chrono::nanoseconds(0)); !done) return participant.drop(done.error());
  note_first_start(strict, session.start_up());  // a case in float32 may follow, and finds warm caches
  if (judge.training) {
    if (auto done = prove_training(participant, session, judge); !done) return participant.drop(done.error());
    participant.strict_training = std::exchange(participant.training, {});
    session.end();
  } else if (const auto proven = prove_sets(participant, session, judge); !proven) {
    participant.drop(proven.error());
  } else if (*proven) {
    session.end();
  }
  participant.strict_spread = std::exchange(participant.evidence.own_spread, 0);  // the timed mode has its own
  participant.row.info.accuracy.reset();
}

void run_deep(Participant& participant, const Job& job, const proof::Reference& reference) {
  const auto give_up = [&](const Failure& why) { participant.deep_note = why.what; };
  auto opened = Session::open(job, {});
  if (!opened) return give_up(opened.error());
  if (auto done = (*opened)->load("generic1"); !done) return give_up(done.error());
  auto outputs = (*opened)->prove({0});  // the only input whose layers the bundle holds
  if (!outputs) return give_up(outputs.error());
  participant.deep = proof::check_outputs(
      reference, "generic1", *outputs, std::vector<int>{0},
      {participant.job.level.reassociates, participant.strict_spread.value_or(participant.evidence.own_spread)});
  (*opened)->end();
}

}  // namespace strata::measure
