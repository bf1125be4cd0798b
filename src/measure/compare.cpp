// SPDX-License-Identifier: Apache-2.0
#include "measure/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "common/interrupt.hpp"
#include "common/outside.hpp"
#include "measure/calibrate.hpp"
#include "measure/cut_case.hpp"
#include "measure/dynamic.hpp"
#include "measure/load_facts.hpp"
#include "measure/make_player.hpp"
#include "measure/measuring_mark.hpp"
#include "measure/peaks.hpp"
#include "measure/references.hpp"
#include "measure/serve.hpp"
#include "measure/solo.hpp"
#include "measure/tune.hpp"
#include "measure/turns.hpp"
#include "measure/warnings.hpp"
#include "plan/clients.hpp"
#include "plan/jobs.hpp"
#include "probe/machine.hpp"
#include "probe/memory.hpp"

namespace strata::measure {
namespace fs = std::filesystem;
namespace {

constexpr double kMinimumEffect = 0.01;  // smaller differences are never claimed (docs/method.md)

class CaseRun {
 public:
  CaseRun(const Setting& setting, const plan::Bundle& bundle, const Besides& besides, store::Store& store,
          const Progress& progress)
      : setting_(setting),
        bundle_(bundle),
        deep_(besides.deep),
        strict_(besides.strict),
        evaluation_(besides.evaluation),
        store_(store),
        progress_(progress) {}

  Result<void> begin(const std::vector<level::Level>& levels);
  Result<void> prove();
  Result<void> tune();
  Result<void> look_closer();
  Result<void> take_turns();
  Result<void> open_batch();
  Result<void> serve();
  Result<void> evaluate();
  Result<Outcome> finish();

 private:
  Result<void> add_row(Player& player);
  std::optional<Failure> prepare_one(Player& player);
  void prove_one(Player& player);
  void certify(Player& player);
  Result<void> write(Player& player) { return store_.update_row(player.row); }
  Result<void> warn(store::Warning warning) {
    warning.case_key = case_.key;
    return store_.add_warning(setting_.run_id, warning);
  }
  std::size_t choose_reference();
  Result<LoadFacts> look_at_others(const MeasuringMark& mark);
  bool fits_together(std::uint64_t& needed, std::uint64_t& available) const;
  std::optional<Failure> cannot_run(const level::Level& level) const {
    return plan::cannot_run(level, bundle_, setting_.environment_of(level), setting_.tools, setting_.place_of(level));
  }
  Result<Job> job_of(const Player& player, const plan::Bundle& bundle) const {
    const auto& level = player.job.level;
    return plan::make_job(level, bundle, setting_.place_of(level), setting_.environment_of(level), setting_.options,
                          logs_);
  }
  std::vector<std::string> preparing(const level::Level& level) const {
    return level::expand(level.prepare, level, plan::places_of(setting_.place_of(level)));
  }
  int threads() const { return bundle_.question.threads; }
  stats::Room room() const { return room_of(bundle_.question, setting_.machine); }

  const Setting& setting_;
  const plan::Bundle& bundle_;
  const plan::Bundle* deep_;
  const plan::Bundle* strict_;
  const Evaluation* evaluation_;
  store::Store& store_;
  const Progress& progress_;
  std::optional<Failure> prove_in_float32(Player& player);
  void store_phases(Player& player);
  References references_;
  std::optional<DynamicPass> dynamic_;
  store::Case case_;
  std::vector<Player> players_;
  bool serving_failed_ = false;
  CutCase cut_;
  fs::path logs_;
};

// Medians of a training step's phases, for the report.
void CaseRun::store_phases(Player& player) {
  if (!references_.trains()) return;
  Json ms = Json::object();
  std::size_t iterations = 0;
  for (const auto& [phase, times] : player.phases) {
    ms[phase] = stats::median(times);
    iterations = times.size();
  }
  player.row.info["phases"] = {
      {"ms", ms}, {"joined", player.joined}, {"iterations", iterations}, {"note", player.phases_note}};
}

Result<void> CaseRun::begin(const std::vector<level::Level>& levels) {
  if (auto opened = references_.open(bundle_, strict_); !opened) return opened;
  if (bundle_.dynamic) {
    auto dynamic = DynamicPass::open(*bundle_.dynamic, references_.outputs(), setting_.order_seed);
    if (!dynamic) return tl::unexpected(dynamic.error());
    dynamic_ = std::move(*dynamic);
  }
  case_.question = bundle_.question;
  case_.id = bundle_.question.id();
  case_.key = key_of(bundle_.question);
  case_.network = bundle_.network;
  case_.bundle = bundle_.info;
  auto limits = limits_of(case_.question, setting_.machine, setting_.effort.budget_s, store_);
  if (!limits) return tl::unexpected(limits.error());
  case_.limits = std::move(*limits);
  const auto sigma = process_sigma(store_, setting_.machine, threads());
  if (!sigma) return tl::unexpected(sigma.error());
  case_.trust = {{"process_sigma", sigma->value},
                 {"process_sigma_source", sigma->source},
                 {"minimum_effect", kMinimumEffect},
                 {"together", true}};
  const auto has_eager =
      std::any_of(levels.begin(), levels.end(), [](const auto& level) { return level.id == "eager"; });
  case_.reference_level = setting_.options.reference;
  for (const auto& level : levels)
    if (case_.reference_level.empty() && !level.harness && (!has_eager || level.id == "eager"))
      case_.reference_level = level.name();
  auto cut = CutCase::open(setting_, case_, store_);
  if (!cut) return tl::unexpected(cut.error());
  cut_ = std::move(*cut);
  if (auto added = store_.add_case(setting_.run_id, case_); !added) return added;
  logs_ = store_.path().parent_path() / "logs" / setting_.run_id / bundle_.key;
  for (const auto& level : levels) {
    auto player = make_player(level, bundle_, setting_, logs_);
    if (!player) return tl::unexpected(player.error());
    if (auto added = add_row(*player); !added) return added;
    players_.push_back(std::move(*player));
  }
  const bool bfloat16 =
      case_.question.precision == core::Precision::bf16 || case_.question.precision == core::Precision::amp_bf16;
  if (case_.question.device == core::Device::cpu && bfloat16 && !probe::native_bfloat16(probe::cpu()))
    if (auto warned = warn(warnings::emulated(case_.id)); !warned) return warned;
  if (const auto& power = references_.power(); power.weak)
    return warn(warnings::weak_proof(case_.id, power.reason, references_.trains() && case_.question.batch == 1));
  return {};
}

Result<void> CaseRun::add_row(Player& player) {
  if (cut_.take_up(player)) return store_.update_row(player.row);
  const auto id = store_.add_row(setting_.run_id, case_.key, player.row);
  if (!id) return tl::unexpected(id.error());
  player.row.row_id = *id;
  return {};
}

std::optional<Failure> CaseRun::prepare_one(Player& player) {
  if (auto why = cannot_run(player.job.level)) return why;
  progress_.status(fmt::format("preparing {}", player.name()), -1);
  const auto prepared = prepare(player.job, preparing(player.job.level));
  if (!prepared) return prepared.error();
  if (*prepared > 1000)
    progress_.note(fmt::format("{}: artefact prepared in {:.0f} s", player.name(), *prepared / 1000));
  return std::nullopt;
}

// The certificate as far as it goes now; a level that is not equal loses its numbers.
void CaseRun::certify(Player& player) {
  if (player.job.level.harness) return;
  player.evidence.flops = flops_of(bundle_.info);
  player.evidence.uncounted = uncounted_of(bundle_.info);
  const auto certificate = references_.certificate(player);
  player.row.proof = certificate.proof;
  if (player.deep && !player.deep->first_difference.empty())
    player.row.proof["first_difference"] = player.deep->first_difference;
  if (player.playing && !certificate.may_have_numbers()) {
    const bool mistrusted = certificate.kind == proof::OutputVerdict::Kind::mistrusted;
    player.drop({certificate.none ? State::failed
                 : mistrusted     ? State::mistrusted
                                  : State::unequal,
                 certificate.none ? "nothing could be proven" : certificate.reason,
                 deep_ || references_.trains() ? "" : "--deep shows the first layer that differs", ""});
    player.row.info["reason_short"] = certificate.reason_short;
  }
}

// The structure is proven in strict float32, where a fault is not hidden by the mode's rounding. nullopt: done, or the
// player was dropped.
std::optional<Failure> CaseRun::prove_in_float32(Player& player) {
  const auto job = job_of(player, *strict_);
  if (!job) return Failure{State::failed, job.error().what, job.error().hint, ""};
  progress_.status(fmt::format("preparing {} in float32", player.name()), -1);
  if (const auto prepared = prepare(*job, preparing(job->level)); !prepared) return prepared.error();
  prove_structure(player, *job, references_.strict_judge(), progress_);
  return std::nullopt;
}

void CaseRun::prove_one(Player& player) {
  if (const auto why = prepare_one(player)) return player.drop(*why);
  if (strict_) {
    if (const auto why = prove_in_float32(player)) return player.drop(*why);
    if (!player.playing || interrupted()) return certify(player);
    const auto kind = references_.certificate(player).kind;
    if (kind != proof::OutputVerdict::Kind::equal && kind != proof::OutputVerdict::Kind::equal_looser)
      return certify(player);
  }
  run_alone(player, references_.judge(), progress_);
  if (const auto first =
          outside::read_file(player.job.cache / "warm.json")) {  // by another run, perhaps another program
    Json& kept = player.row.info["first_ever"] = Json::object();
    for (const char* part : {"first_ever_ms", "prepare_ms"}) kept[part] = outside::number_or(*first, part);
  }
  certify(player);
}

Result<void> CaseRun::prove() {
  for (auto& player : players_) {
    if (interrupted()) break;
    prove_one(player);
    if (interrupted()) break;
    if (!player.playing) progress_.note(fmt::format("{}: {}: {}", player.name(), player.row.state, player.row.reason));
    if (auto written = write(player); !written) return written;
    std::uintmax_t bytes = 0;
    std::error_code ec;
    for (const auto& entry : fs::recursive_directory_iterator(player.job.cache, ec))
      if (entry.is_regular_file(ec)) bytes += entry.file_size(ec);
    player.row.disk_bytes = static_cast<std::int64_t>(bytes);
  }
  return {};
}

// Gives every level the same measured seconds to find its best variant, which is then measured afresh beside the
// default: the least of several noisy times is too low. What was tried stays in the default row's `tuning`.
Result<void> CaseRun::tune() {
  const std::size_t levels = setting_.options.tuned ? players_.size() : 0;
  for (std::size_t i = 0; i < levels && !interrupted(); ++i) {
    if (!players_[i].playing || players_[i].job.level.harness) continue;
    std::vector<Player> tried{players_[i]};
    std::vector<std::string> elsewhere;  // variants that are not for this case
    for (const auto& variant : players_[i].job.level.variants) {
      const auto level = level::as_variant(players_[i].job.level, variant);
      const auto why = cannot_run(level);
      if (why && why->state == State::unsupported) {  // of another mode or device
        elsewhere.push_back(fmt::format("{}: {}", variant.name, why->what));
        continue;
      }
      auto candidate = make_player(level, bundle_, setting_, logs_);
      if (!candidate) return tl::unexpected(candidate.error());
      prove_one(*candidate);
      if (!candidate->playing && !why)
        progress_.note(fmt::format("{}: {}: {}", candidate->name(), candidate->row.state, candidate->row.reason));
      tried.push_back(std::move(*candidate));
    }
    if (tried.size() == 1) {
      players_[i].row.info["tuning"] = nothing_to_tune(elsewhere);
      if (auto written = write(players_[i]); !written) return written;
      continue;
    }
    progress_.status(fmt::format("tuning {}", players_[i].name()), -1);
    // Half the restarts: enough that one lucky process does not choose, and what is chosen is measured afresh.
    TurnsPlan trial;
    trial.effort = {std::clamp(setting_.effort.restarts / 2, 1, 4), setting_.effort.tune_s, 0, 0, "tuning"};
    trial.seed = setting_.order_seed + i;
    trial.room = room();
    trial.process_sigma = case_.trust["process_sigma"];
    auto choice = choose_variant(tried, references_.judge(), store_, trial, progress_);
    if (!choice) return tl::unexpected(choice.error());
    players_[i].row.info["tuning"] = std::move(choice->record);
    const auto named = std::find_if(players_.begin(), players_.end(),
                                    [&](const Player& player) { return player.name() == choice->best.name(); });
    if (named != players_.end()) {
      named->row.info["tuned"] = true;
      if (auto written = write(*named); !written) return written;
    } else {
      choice->best.row.info["tuned"] = true;
      if (auto added = add_row(choice->best); !added) return added;
      if (auto written = write(choice->best); !written) return written;
      players_.push_back(std::move(choice->best));
    }
    if (auto written = write(players_[i]); !written) return written;
  }
  return {};
}

Result<void> CaseRun::look_closer() {
  if (!deep_) return {};
  auto opened = proof::Reference::open(deep_->folder);
  if (!opened) return tl::unexpected(opened.error());
  for (auto& player : players_) {
    // A level that could not run at all has nothing to show layer by layer.
    const bool ran = player.playing || player.row.state == "unequal" || player.row.state == "mistrusted";
    if (!ran || player.job.level.harness || interrupted()) continue;
    progress_.status(fmt::format("comparing {} layer by layer", player.name()), -1);
    const auto job = job_of(player, *deep_);
    if (!job) return tl::unexpected(job.error());
    if (const auto prepared = prepare(*job, preparing(job->level)); !prepared)
      player.deep_note = prepared.error().what;
    else
      run_deep(player, *job, *opened);
    player.row.info["deep"] = player.deep ? Json{{"first_difference", player.deep->first_difference},
                                                 {"worst_ratio", player.deep->worst_ratio},
                                                 {"reason", player.deep->reason}}
                                          : Json{{"note", player.deep_note}};
    if (player.deep && !player.deep->first_difference.empty()) {
      certify(player);
      if (!player.playing)
        player.row.reason += fmt::format("; the first layer that differs is {}", player.deep->first_difference);
      progress_.note(
          fmt::format("{}: the first layer that differs is {}", player.name(), player.deep->first_difference));
    }
    if (auto written = write(player); !written) return written;
  }
  return {};
}

bool CaseRun::fits_together(std::uint64_t& needed, std::uint64_t& available) const {
  available = probe::memory().available_bytes;
  needed = 0;
  for (const auto& player : players_)
    if (player.playing) needed += player.peak_bytes * (setting_.options.aa ? 2 : 1);
  return static_cast<double>(needed) < 0.85 * static_cast<double>(available);
}

// A reference that dropped out leaves the others to be compared with the most abstract level that is left; the report
// says so.
std::size_t CaseRun::choose_reference() {
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < players_.size(); ++i)
    if (players_[i].name() == case_.reference_level) chosen = i;
  if (players_.empty() || players_[chosen].playing) return chosen;
  for (std::size_t i = players_.size(); i-- > 0;)
    if (players_[i].playing && !players_[i].job.level.harness) chosen = i;
  if (!players_[chosen].playing) return chosen;
  if (!case_.trust.contains("reference_wanted")) case_.trust["reference_wanted"] = case_.reference_level;
  case_.reference_level = players_[chosen].name();
  return chosen;
}

// What others use now, before the levels' own work hides it.
Result<LoadFacts> CaseRun::look_at_others(const MeasuringMark& mark) {
  LoadFacts load;
  load.begin = probe::other_load(std::chrono::milliseconds(300));
  load.other_run = mark.other();
  if (load.busy())
    progress_.note(fmt::format("warning: other programs use {:.0f}% of this machine{}", *load.begin * 100,
                               load.other_run ? "; " + warnings::another_run(*load.other_run) : ""));
  case_.trust["load"] = to_json(load);
  if (auto written = store_.add_case(setting_.run_id, case_); !written) return tl::unexpected(written.error());
  return load;
}

Result<void> CaseRun::take_turns() {
  TurnsPlan plan{
      setting_.effort,   setting_.order_seed, room(), setting_.options.aa, true, case_.trust["process_sigma"],
      choose_reference()};
  std::uint64_t needed = 0, available = 0;
  plan.together = fits_together(needed, available);
  case_.trust["together"] = plan.together;
  if (!plan.together)
    if (auto warned = warn(warnings::not_together(needed, available)); !warned) return warned;
  const MeasuringMark mark(store::Store::default_path().parent_path() / "measuring");
  auto load = look_at_others(mark);
  if (!load) return tl::unexpected(load.error());
  cut_.add_to(players_, plan);
  plan.finished = [&](int number, const std::vector<probe::Load>& loads) -> Result<void> {
    for (auto& player : players_)
      if (auto written = write(player); !written) return written;
    return store_.add_restart(setting_.run_id, case_.key, number, to_json(loads));
  };
  auto done = measure::take_turns(players_, references_.judge(), store_, plan, progress_);
  if (!done) return tl::unexpected(done.error());
  choose_reference();  // which may have failed meanwhile
  add_restarts(*load, done->load);
  case_.trust["load"] = to_json(*load);
  case_.trust["restarts"] = done->restarts;
  if (load->busy())
    if (auto warned = warn(warnings::busy(case_.id, *load)); !warned) return warned;
  if (!done->too_busy.empty()) {
    const auto warning = warnings::restarts_part(case_.id, done->too_busy);
    progress_.note("warning: " + warning.what);
    if (auto warned = warn(warning); !warned) return warned;
  }
  return store_.add_case(setting_.run_id, case_);
}

// One artefact over several batch sizes, level by level; what came of it stays in the row's info.
Result<void> CaseRun::open_batch() {
  if (!dynamic_) return {};
  TurnsPlan turns;
  turns.effort = {std::min(setting_.effort.restarts, 4), std::min(setting_.effort.tune_s, setting_.effort.budget_s), 0,
                  0, "dynamic"};
  turns.seed = setting_.order_seed;
  turns.room = room();
  turns.trial = true;
  for (auto& player : players_) {
    if (interrupted()) break;
    if (!player.playing || player.job.level.harness) continue;
    Json found;
    if (!player.job.level.dynamic) {
      found = {{"state", "unsupported"}, {"reason", "level.json does not say that it serves several batch sizes"}};
    } else if (auto job = job_of(player, *bundle_.dynamic); !job) {
      found = {{"state", "failed"}, {"reason", job.error().what}, {"hint", job.error().hint}};
    } else {
      job->launch.log_path += ".dynamic";
      auto ran = dynamic_->run(player, *job, preparing(job->level), store_, turns, progress_);
      if (!ran) return tl::unexpected(ran.error());
      found = std::move(*ran);
    }
    if (found["state"] != "measured")
      progress_.note(fmt::format("{} with an open batch: {}: {}", player.name(), found.value("state", ""),
                                 found.value("reason", "")));
    player.row.info["dynamic"] = std::move(found);
    if (auto written = write(player); !written) return written;
  }
  return {};
}

// A pass of its own, after the turns: what goes wrong there takes nothing from a row but its clients.
Result<void> CaseRun::serve() {
  if (setting_.options.clients.empty() || references_.trains()) return {};
  const auto clients = plan::parse_clients(setting_.options.clients);
  ServePlan plan{clients.value_or(std::vector<int>{}), std::clamp(setting_.effort.restarts, 3, 6),
                 setting_.effort.serve_s, threads(), setting_.order_seed};
  serving_failed_ = serve_clients(players_, references_.outputs(), plan, progress_);
  for (auto& player : players_)
    if (auto written = write(player); !written) return written;
  return {};
}

// The user's score of every level that has numbers. A score that fails leaves them.
Result<void> CaseRun::evaluate() {
  for (auto& player : players_) {
    if (!evaluation_ || !player.playing || player.row.blocks.empty() || player.job.level.harness || interrupted())
      continue;
    progress_.status(fmt::format("scoring {}", player.name()), -1);
    auto found = measure::evaluate(player, *evaluation_, setting_.place, setting_.environment);
    if (interrupted()) break;
    if (found["state"] != "scored")
      progress_.note(fmt::format("{}: no score: {}", player.name(), found.value("reason", "")));
    player.row.info["eval"] = std::move(found);
    if (auto written = write(player); !written) return written;
  }
  return {};
}

Result<Outcome> CaseRun::finish() {
  Outcome outcome;
  outcome.failed = serving_failed_;
  const auto no_limit = why_no_limit(bundle_.info, case_.limits);
  for (auto& player : players_) {
    if (player.playing && !player.row.blocks.empty()) {
      store_phases(player);
      std::vector<double> walls;
      for (const auto& block : player.row.blocks) walls.insert(walls.end(), block.wall_ns.begin(), block.wall_ns.end());
      player.evidence.iteration_ms = stats::median(walls) * 1e-6;
      if (no_limit.empty())
        player.evidence.limit_ms = *flops_of(bundle_.info) / case_.limits.value("gflops", 1.0) * 1e-6;
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
    add_outcome(outcome, player.row, setting_.options.levels);
    if (auto written = write(player); !written) return tl::unexpected(written.error());
  }
  if (!interrupted())
    if (auto written = store_.finish_case(setting_.run_id, case_.key); !written) return tl::unexpected(written.error());
  return outcome;
}

}  // namespace

void add_outcome(Outcome& outcome, const store::Row& row, const std::vector<std::string>& wanted) {
  const auto state = state_from(row.state).value_or(State::failed);
  const bool absent = state == State::unavailable || state == State::unsupported;
  if (absent && std::find(wanted.begin(), wanted.end(), row.level_and_variant()) != wanted.end())
    outcome.missing = true;
  if (!absent && state != State::measured) outcome.failed = true;
  const Json &eval = outside::field(row.info, "eval"), &open = outside::field(row.info, "dynamic");
  if (eval.is_object() && outside::text_or(eval, "state") != "scored") outcome.failed = true;
  const auto served = open.is_object() ? outside::text_or(open, "state") : "measured";
  if (served != "measured" && served != "unsupported" && served != "unavailable") outcome.failed = true;
}

Result<Outcome> compare_case(const Setting& setting, const plan::Bundle& bundle, const Besides& besides,
                             const std::vector<level::Level>& levels, store::Store& store, const Progress& progress) {
  CaseRun run(setting, bundle, besides, store, progress);
  if (auto done = run.begin(levels); !done) return tl::unexpected(done.error());
  if (auto done = run.prove(); !done) return tl::unexpected(done.error());
  if (!interrupted())
    if (auto done = run.tune(); !done) return tl::unexpected(done.error());
  if (auto done = run.look_closer(); !done) return tl::unexpected(done.error());
  if (!interrupted())
    if (auto done = run.take_turns(); !done) return tl::unexpected(done.error());
  if (!interrupted())
    if (auto done = run.open_batch(); !done) return tl::unexpected(done.error());
  if (!interrupted())
    if (auto done = run.serve(); !done) return tl::unexpected(done.error());
  if (auto done = run.evaluate(); !done) return tl::unexpected(done.error());
  return run.finish();
}

}  // namespace strata::measure
