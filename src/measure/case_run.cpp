// SPDX-License-Identifier: Apache-2.0
#include "measure/case_run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/interrupt.hpp"
#include "common/lookup.hpp"
#include "common/outside.hpp"
#include "measure/learn.hpp"
#include "measure/level_executor.hpp"
#include "measure/machine_facts.hpp"
#include "measure/make_player.hpp"
#include "measure/peaks.hpp"
#include "measure/solo.hpp"
#include "measure/warnings.hpp"
#include "plan/jobs.hpp"
#include "probe/machine.hpp"

namespace strata::measure {

CaseRun::CaseRun(const Setting& setting_in, const plan::Bundle& bundle_in, const Besides& besides_in,
                 MachineFacts& facts, store::Store& store, const Progress& progress_in)
    : setting(setting_in),
      bundle(bundle_in),
      besides(besides_in),
      progress(progress_in),
      sink(store, setting_in.run_id),
      facts_(facts),
      store_(store),
      logs_(store.path().parent_path() / "logs" / setting_in.run_id / bundle_in.key) {}

Result<void> CaseRun::look_at_machine() {
  auto limits = facts_.limits(record.question);
  if (!limits) return tl::unexpected(limits.error());
  record.limits = std::move(*limits);
  const auto sigma = facts_.process_sigma(threads());
  if (!sigma) return tl::unexpected(sigma.error());
  record.trust = {{"process_sigma", sigma->value},
                  {"process_sigma_source", sigma->source},
                  {"minimum_effect", kMinimumEffect},
                  {"together", true}};
  return {};
}

// Points of a sweep are left out: their processes serve other points, too. A case that goes on keeps what it began
// with.
Result<void> CaseRun::learn_from_earlier(const std::vector<level::Level>& levels) {
  if (besides.warm || !record.trust.contains("process_sigma")) return {};
  if (const auto before = cut.trust(); before.is_object()) {
    record.trust["learned"] = lookup::list(before, "learned");
    return {};
  }
  std::set<std::string> ids;
  for (const auto& level : levels)
    if (!level.harness) ids.insert(level.id);
  auto learned = learn(store_, setting.run_id, record, ids);
  if (!learned) return tl::unexpected(learned.error());
  record.trust["learned"] = std::move(*learned);
  return {};
}

Result<void> CaseRun::begin(const std::vector<level::Level>& levels, const core::Case& asked) {
  if (auto opened = references.open(bundle, besides.strict); !opened) return opened;
  if (bundle.dynamic) {
    auto dynamic = DynamicPass::open(*bundle.dynamic, references.outputs(), setting.order_seed);
    if (!dynamic) return tl::unexpected(dynamic.error());
    open_batch = std::move(*dynamic);
  }
  record.question = asked;
  record.id = asked.id();
  record.key = key_of(asked);
  record.network = bundle.network;
  record.bundle = bundle.info;
  record.limits = Json::object();
  record.trust = Json::object();
  if (!asked.recipe || !asked.recipe->training)  // times of single iterations are judged by what the machine can do
    if (auto looked = look_at_machine(); !looked) return looked;
  const auto has_eager =
      std::any_of(levels.begin(), levels.end(), [](const auto& level) { return level.id == "eager"; });
  record.reference_level = setting.options.reference;
  for (const auto& level : levels)
    if (record.reference_level.empty() && !level.harness && (!has_eager || level.id == "eager"))
      record.reference_level = level.name();
  auto opened_cut = CutCase::open(setting, record, store_);
  if (!opened_cut) return tl::unexpected(opened_cut.error());
  cut = std::move(*opened_cut);
  if (auto learned = learn_from_earlier(levels); !learned) return learned;
  if (auto added = sink.of_case(record); !added) return added;
  for (const auto& level : levels) {
    auto player = make_player(level);
    if (!player) return tl::unexpected(player.error());
    if (auto added = add_row(*player); !added) return added;
    players.push_back(std::move(*player));
  }
  const bool bfloat16 =
      record.question.precision == core::Precision::bf16 || record.question.precision == core::Precision::amp_bf16;
  if (record.question.device == core::Device::cpu && bfloat16 && !probe::native_bfloat16(probe::cpu()))
    if (auto warned = sink.warning(warnings::emulated(record.id)); !warned) return warned;
  if (const auto& power = references.power(); power.weak)
    return sink.warning(
        warnings::weak_proof(record.id, power.reason, references.trains() && record.question.batch == 1));
  return {};
}

Result<Player> CaseRun::make_player(const level::Level& level) const {
  return measure::make_player(level, bundle, setting, logs_);
}

Result<Job> CaseRun::make_job(const Player& player, const plan::Bundle& other) const {
  return plan::make_job(player.job.level, other, setting.place_of(player.job.level),
                        setting.environment_of(player.job.level), setting.options, logs_);
}

Try<double> CaseRun::prepare(const Job& job) const {
  return measure::prepare(job, prepare_command(job.level));
}

std::vector<std::string> CaseRun::prepare_command(const level::Level& level) const {
  return level::expand(level.prepare, level, plan::places_of(setting.place_of(level)));
}

Result<void> CaseRun::add_row(Player& player) {
  return cut.take_up(player) ? sink.row(player.row) : sink.new_row(player.row);
}

std::optional<Failure> CaseRun::cannot_run(const level::Level& level) const {
  if (const auto skipped = besides.skipped.find(level.name()); skipped != besides.skipped.end()) return skipped->second;
  return plan::cannot_run(level, bundle, record.question, setting.environment_of(level), setting.tools,
                          setting.place_of(level));
}

std::optional<Failure> CaseRun::prepare_one(const Player& player) const {
  if (auto why = cannot_run(player.job.level)) return why;
  progress.status(fmt::format("preparing {}", player.name()), -1);
  const auto prepared = prepare(player.job);
  if (!prepared) return prepared.error();
  if (*prepared > 1000)
    progress.note(fmt::format("{}: artefact prepared in {:.0f} s", player.name(), *prepared / 1000));
  return std::nullopt;
}

void CaseRun::certify(Player& player) {
  if (player.job.level.harness) return;
  player.evidence.flops = flops_of(bundle.info);
  player.evidence.uncounted = uncounted_of(bundle.info);
  player.evidence.references_shown = player.job.references_shown;
  auto certificate = references.certificate(player);
  if (player.proven_before) certificate = proof::continued(*player.proven_before, std::move(certificate));
  player.row.proof = certificate.proof;
  if (player.deep && !player.deep->first_difference.empty())
    player.row.proof["first_difference"] = player.deep->first_difference;
  if (player.playing && !certificate.may_have_numbers()) {
    const bool mistrusted = certificate.kind == proof::OutputVerdict::Kind::mistrusted;
    player.drop({certificate.none ? State::failed
                 : mistrusted     ? State::mistrusted
                                  : State::unequal,
                 certificate.none ? "nothing could be proven" : certificate.reason,
                 besides.deep || references.trains() ? "" : "--deep shows the first layer that differs", ""});
    player.row.info["reason_short"] = certificate.reason_short;
  }
}

// The structure is proven in strict float32, where a fault is not hidden by the mode's rounding. nullopt: done, or the
// player was dropped.
std::optional<Failure> CaseRun::prove_in_float32(Player& player) {
  const auto job = make_job(player, *besides.strict);
  if (!job) return Failure{State::failed, job.error().what, job.error().hint, ""};
  progress.status(fmt::format("preparing {} in float32", player.name()), -1);
  if (const auto prepared = prepare(*job); !prepared) return prepared.error();
  prove_structure(player, *job, references.strict_judge(), progress);
  return std::nullopt;
}

Result<void> CaseRun::warn_once(store::Warning warning, bool noted) {
  if (!warned_.insert({warning.id, warning.row_id.value_or(0)}).second) return {};
  if (noted) progress.note("warning: " + warning.what);
  return sink.warning(std::move(warning));
}

void CaseRun::prove(Player& player) {
  if (const auto why = prepare_one(player)) return player.drop(*why);
  if (besides.warm && !besides.strict && cut.take_proof(player)) return certify(player);
  if (besides.strict) {
    if (const auto why = prove_in_float32(player)) return player.drop(*why);
    if (!player.playing || interrupted()) return certify(player);
    const auto kind = references.certificate(player).kind;
    if (kind != proof::OutputVerdict::Kind::equal && kind != proof::OutputVerdict::Kind::equal_looser)
      return certify(player);
  }
  if (besides.alone) {
    run_alone(player, references.judge(), progress);
  } else {
    prove_warm(player, references.judge(), *besides.warm, cpus_of(threads(), restarts), progress);
    const auto expected = besides.expected_bytes.find(player.name());
    if (expected != besides.expected_bytes.end()) {
      player.peak_bytes = static_cast<std::uint64_t>(expected->second);
      player.row.memory = {{"expected_peak_bytes", player.peak_bytes}};
    }
  }
  if (const auto first =
          outside::read_file(player.job.cache / "warm.json")) {  // by another run, perhaps another program
    Json& kept = player.row.info["first_ever"] = Json::object();
    for (const char* part : {"first_ever_ms", "prepare_ms"}) kept[part] = outside::number_or(*first, part);
  }
  certify(player);
}

void CaseRun::store_phases(Player& player) const {
  if (!references.trains()) return;
  Json ms = Json::object();
  std::size_t iterations = 0;
  for (const auto& [phase, times] : player.phases) {
    ms[phase] = stats::median(times);
    iterations = times.size();
  }
  player.row.info["phases"] = {
      {"ms", ms}, {"joined", player.joined}, {"iterations", iterations}, {"note", player.phases_note}};
}

Result<Outcome> CaseRun::finish() {
  Outcome outcome;
  outcome.failed = failed;
  const auto no_limit = why_no_limit(bundle.info, record.limits);
  for (auto& player : players) {
    if (player.playing && !player.row.blocks.empty()) {
      store_phases(player);
      std::vector<double> walls, latencies;
      for (const auto& block : player.row.blocks) {
        walls.insert(walls.end(), block.wall_ns.begin(), block.wall_ns.end());
        latencies.insert(latencies.end(), block.latency_ns.begin(), block.latency_ns.end());
      }
      player.evidence.iteration_ms = stats::median(walls) * 1e-6;
      if (!latencies.empty()) player.evidence.latency_ms = stats::median(latencies) * 1e-6;
      if (no_limit.empty())
        player.evidence.limit_ms = *flops_of(bundle.info) / record.limits.value("gflops", 1.0) * 1e-6;
      player.evidence.limit_note = no_limit;
      player.row.state = "measured";
      player.row.reason.clear();
      player.row.judged = true;
      certify(player);
    } else if (player.playing) {
      player.drop({State::failed, interrupted() ? "interrupted before it was measured" : "it has no block",
                   "run the command again", ""});
    } else {
      certify(player);
    }
    add_outcome(outcome, player.row, setting.options.levels);
    if (auto written = sink.row(player.row); !written) return tl::unexpected(written.error());
  }
  if (!interrupted())
    if (auto written = sink.finished(); !written) return tl::unexpected(written.error());
  return outcome;
}

}  // namespace strata::measure
