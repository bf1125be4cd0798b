// SPDX-License-Identifier: Apache-2.0
#include "measure/case_run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/learn.hpp"
#include "analysis/limit.hpp"
#include "analysis/warnings.hpp"
#include "common/interrupt.hpp"
#include "common/outside.hpp"
#include "measure/isolated.hpp"
#include "measure/level_executor.hpp"
#include "measure/machine_facts.hpp"
#include "measure/peaks.hpp"
#include "plan/jobs.hpp"
#include "probe/machine.hpp"
#include "proof/agreement.hpp"

namespace strata::measure {

CaseRun::CaseRun(const Setting& setting_in, const plan::Bundle& bundle_in, const CaseExtras& extras_in,
                 MachineFacts& facts, store::Store& store, const Progress& progress_in)
    : setting(setting_in),
      bundle(bundle_in),
      extras(extras_in),
      progress(progress_in),
      sink(store, setting_in.run_id),
      facts_(facts),
      store_(store),
      logs_(store.path().parent_path() / "logs" / setting_in.run_id / bundle_in.key) {}

Result<void> CaseRun::look_at_machine() {
  record.limits = STRATA_TRY(facts_.limits(record.question));
  const auto sigma = STRATA_TRY(facts_.process_sigma(threads()));
  record.trust = {.process_sigma = sigma.value,
                  .process_sigma_source = sigma.source,
                  .minimum_effect = analysis::kMinimumEffect,
                  .together = true};
  return {};
}

// Points of a sweep are left out: their processes serve other points, too. A case that goes on keeps what it began
// with.
Result<void> CaseRun::learn_from_earlier(const std::vector<level::Level>& levels) {
  if (extras.warm || !record.trust.process_sigma) return {};
  if (const auto* before = interrupted_case.before()) {
    record.trust.learned = before->trust.learned;
    return {};
  }
  std::set<std::string> ids;
  for (const auto& level : levels)
    if (!level.harness) ids.insert(level.id);
  record.trust.learned = STRATA_TRY(analysis::learn(store_, setting.run_id, record, ids));
  return {};
}

Result<void> CaseRun::begin(const std::vector<level::Level>& levels, const core::Case& question) {
  STRATA_TRY(references.open(bundle, extras.strict));
  if (bundle.dynamic) {
    open_batch = STRATA_TRY(DynamicPass::open(*bundle.dynamic, references.outputs(), setting.order_seed));
  }
  record.question = question;
  record.id = question.id();
  record.key = key_of(question);
  record.network = bundle.network;
  record.bundle = bundle.info;
  if (!question.recipe ||
      !question.recipe->training)  // times of single iterations are judged by what the machine can do
    STRATA_TRY(look_at_machine());
  const auto has_eager =
      std::any_of(levels.begin(), levels.end(), [](const auto& level) { return level.id == "eager"; });
  record.reference_level = setting.options.reference;
  for (const auto& level : levels)
    if (record.reference_level.empty() && !level.harness && (!has_eager || level.id == "eager"))
      record.reference_level = level.name();
  interrupted_case = STRATA_TRY(InterruptedCase::open(setting, record, store_));
  STRATA_TRY(learn_from_earlier(levels));
  STRATA_TRY(sink.of_case(record));
  for (const auto& level : levels) {
    auto participant = STRATA_TRY(make_participant(level));
    STRATA_TRY(add_row(participant));
    participants.push_back(std::move(participant));
  }
  const bool bfloat16 =
      record.question.precision == core::Precision::bf16 || record.question.precision == core::Precision::amp_bf16;
  if (record.question.device == core::Device::cpu && bfloat16 && !probe::native_bfloat16(probe::cpu()))
    STRATA_TRY(sink.warning(analysis::warnings::emulated(record.id)));
  if (const auto& power = references.power(); power.weak)
    return sink.warning(
        analysis::warnings::weak_proof(record.id, power.reason, references.trains() && record.question.batch == 1));
  return {};
}

worker::ProgressCallback CaseRun::shown_for(const level::Level& level) const {
  return [shown = progress, name = level.name()](const std::string& doing) {
    shown.status(fmt::format("{}: {}", name, doing), -1);
  };
}

Result<Participant> CaseRun::make_participant(const level::Level& level) const {
  auto participant = STRATA_TRY(measure::make_participant(level, bundle, setting, logs_));
  participant.job.progress = shown_for(level);
  return participant;
}

Result<Job> CaseRun::make_job(const Participant& participant, const plan::Bundle& other) const {
  const auto& level = participant.job.level;
  auto job = STRATA_TRY(
      plan::make_job(level, other, setting.place_of(level), setting.environment_of(level), setting.options, logs_));
  job.progress = shown_for(level);
  return job;
}

Try<double> CaseRun::prepare(const Job& job) const {
  return session::prepare(job, prepare_command(job.level));
}

std::vector<std::string> CaseRun::prepare_command(const level::Level& level) const {
  return level::expand(level.prepare, level, plan::places_of(setting.place_of(level)));
}

Result<void> CaseRun::add_row(Participant& participant) {
  return interrupted_case.restore_row(participant) ? sink.row(participant.row) : sink.new_row(participant.row);
}

std::optional<Failure> CaseRun::cannot_run(const level::Level& level) const {
  if (const auto skipped = extras.skipped.find(level.name()); skipped != extras.skipped.end()) return skipped->second;
  return plan::cannot_run(level, bundle, record.question, setting.environment_of(level), setting.tools,
                          setting.place_of(level));
}

std::optional<Failure> CaseRun::prepare_one(const Participant& participant) const {
  if (auto why = cannot_run(participant.job.level)) return why;
  progress.status(fmt::format("preparing {}", participant.name()), -1);
  const auto prepared = prepare(participant.job);
  if (!prepared) return prepared.error();
  if (*prepared > 1000)
    progress.note(fmt::format("{}: artefact prepared in {:.0f} s", participant.name(), *prepared / 1000));
  return std::nullopt;
}

void CaseRun::certify(Participant& participant) {
  if (participant.job.level.harness) return;
  participant.evidence.flops = analysis::flops_of(bundle.info);
  participant.evidence.uncounted = analysis::uncounted_of(bundle.info);
  participant.evidence.references_shown = participant.job.references_shown;
  auto certificate = references.certificate(participant);
  if (participant.proven_before) certificate = proof::continued(*participant.proven_before, std::move(certificate));
  participant.row.proof = certificate.proof;
  if (participant.deep && !participant.deep->first_difference.empty())
    participant.row.proof->first_difference = participant.deep->first_difference;
  if (participant.active && !certificate.may_have_numbers()) {
    const bool mistrusted = certificate.kind == proof::OutputVerdict::Kind::mistrusted;
    participant.drop({.state = certificate.none ? State::failed
                               : mistrusted     ? State::mistrusted
                                                : State::unequal,
                      .what = certificate.none ? "nothing could be proven" : certificate.reason,
                      .hint = extras.deep || references.trains() ? "" : "--deep shows the first layer that differs"});
    participant.row.info.reason_short = certificate.reason_short;
  }
}

// The structure is proven in strict float32, where a fault is not hidden by the mode's rounding. nullopt: done, or the
// participant was dropped.
std::optional<Failure> CaseRun::prove_in_float32(Participant& participant) {
  const auto job = make_job(participant, *extras.strict);
  if (!job) return worker::failed_by(job.error());
  progress.status(fmt::format("preparing {} in float32", participant.name()), -1);
  if (const auto prepared = prepare(*job); !prepared) return prepared.error();
  prove_structure(participant, *job, references.strict_judge(), progress);
  return std::nullopt;
}

Result<void> CaseRun::warn_once(store::Warning warning, bool noted) {
  if (!warned_.insert({warning.id, warning.row_id.value_or(0)}).second) return {};
  if (noted) progress.note("warning: " + warning.what);
  return sink.warning(std::move(warning));
}

Result<void> CaseRun::weigh_refusals() {
  std::vector<proof::Answer> answers;
  for (const auto& participant : participants) {
    const auto& level = participant.job.level;
    const auto author = level.peer ? level.id : level.environment ? "" : "strata";
    const auto& sets = participant.evidence.sets;
    if (level.harness || sets.empty()) continue;
    const auto refused = std::ranges::find_if(sets, [](const auto& set) { return !set.second.equal_work(); });
    answers.push_back({participant.name(), author, refused == sets.end() ? &sets.begin()->second : &refused->second});
  }
  const auto doubt = proof::doubt_of(answers);
  return doubt.empty() ? Result<void>{} : sink.warning(analysis::warnings::others_agree(doubt));
}

void CaseRun::prove(Participant& participant) {
  if (const auto why = prepare_one(participant)) return participant.drop(*why);
  if (extras.warm && !extras.strict && interrupted_case.restore_proof(participant)) return certify(participant);
  if (extras.strict) {
    if (const auto why = prove_in_float32(participant)) return participant.drop(*why);
    if (!participant.active || interrupted()) return certify(participant);
    const auto kind = references.certificate(participant).kind;
    if (kind != proof::OutputVerdict::Kind::equal && kind != proof::OutputVerdict::Kind::equal_looser)
      return certify(participant);
  }
  if (extras.alone) {
    run_alone(participant, references.judge(), progress);
  } else {
    prove_warm(participant, references.judge(), *extras.warm, cpus_of(threads(), restarts), progress);
    const auto expected = extras.expected_bytes.find(participant.name());
    if (expected != extras.expected_bytes.end()) {
      participant.peak_bytes = static_cast<std::uint64_t>(expected->second);
      participant.row.memory =
          store::MemoryFacts{.expected_peak_bytes = static_cast<std::int64_t>(participant.peak_bytes)};
    }
  }
  // By another run, perhaps another program: of one that noted other fields nothing is known.
  if (const auto first = outside::read_file(participant.job.cache / "warm.json"); first && first->contains("total_ms"))
    participant.row.info.cold_start =
        store::ColdStart{outside::number_or(*first, "total_ms"), outside::number_or(*first, "prepare_ms")};
  certify(participant);
}

void CaseRun::store_phases(Participant& participant) const {
  if (!references.trains()) return;
  auto& phases = participant.row.info.phases.emplace();
  for (const auto& [phase, times] : participant.phases) {
    phases.ms[phase] = stats::median(times);
    phases.iterations = static_cast<std::int64_t>(times.size());
  }
  phases.joined = participant.joined;
  phases.note = participant.phases_note;
}

Result<Outcome> CaseRun::finish() {
  Outcome outcome;
  outcome.failed = failed;
  const auto no_limit = analysis::why_no_limit(bundle.info, record.limits);
  for (auto& participant : participants) {
    if (participant.active && !participant.row.blocks.empty()) {
      store_phases(participant);
      std::vector<double> walls, latencies;
      for (const auto& block : participant.row.blocks) {
        walls.insert(walls.end(), block.wall_ns.begin(), block.wall_ns.end());
        latencies.insert(latencies.end(), block.latency_ns.begin(), block.latency_ns.end());
      }
      participant.evidence.iteration_ms = stats::median(walls) * 1e-6;
      if (!latencies.empty()) participant.evidence.latency_ms = stats::median(latencies) * 1e-6;
      if (no_limit.empty())
        participant.evidence.limit_ms = *analysis::flops_of(bundle.info) / record.limits->gflops * 1e-6;
      participant.evidence.limit_note = no_limit;
      participant.row.state = State::measured;
      participant.row.reason.clear();
      participant.row.judged = true;
      certify(participant);
    } else if (participant.active) {
      participant.drop({.state = State::failed,
                        .what = interrupted() ? "interrupted before it was measured" : "it has no block",
                        .hint = "run the command again"});
    } else {
      certify(participant);
    }
    add_outcome(outcome, participant.row, setting.options.levels);
    STRATA_TRY(sink.row(participant.row));
  }
  if (!interrupted()) STRATA_TRY(sink.finished());
  return outcome;
}

}  // namespace strata::measure
