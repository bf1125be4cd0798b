// SPDX-License-Identifier: Apache-2.0
#include "analysis/case_result.hpp"

#include <algorithm>
#include <map>

#include "analysis/estimate.hpp"
#include "analysis/limit.hpp"
#include "analysis/result_json.hpp"
#include "analysis/row_result.hpp"
#include "common/lookup.hpp"
#include "common/outside.hpp"

namespace strata::analysis {
namespace {

bool trains(const store::Case& run_case) {
  return run_case.question.mode == core::Mode::train;
}

// Of the last level, all instances; of one instance where the machine's description is older.
double cache_bytes_of(const nlohmann::json& machine) {
  const auto of = [&](const char* name) { return lookup::number(machine, name); };
  if (const double all = of("last_cache_bytes").value_or(0); all > 0) return all;
  return std::max(of("l3_bytes").value_or(0), of("l2_bytes").value_or(0) * of("cores").value_or(1));
}

// What the machine's rates say of the least time. "bound" where no program can take less, which is true of weights and
// inputs that no cache holds; "roofline" for the arithmetic, of which Winograd and fused operations do less than is
// counted. Nothing where neither says anything.
std::optional<LimitFacts> limits_of(const store::Run& run, const store::Case& run_case) {
  const auto rates = run_case.limits.value_or(store::Limits{});
  if (rates.gflops <= 0 || rates.gbytes_per_s <= 0) return std::nullopt;
  const auto fact = [&](const char* name) { return lookup::number(run_case.bundle, name).value_or(0); };
  // A training step computes about three times: outputs, gradients of activations, gradients of weights.
  const double flops = fact("flops") * (trains(run_case) ? 3 : 1);
  const bool counted = uncounted_of(run_case.bundle).empty();
  const double cache = cache_bytes_of(run.machine);
  // Each weight is read once and each input moved once; what the last cache cannot hold comes from memory each time.
  const double from_memory = cache > 0 ? std::max(0.0, fact("weight_bytes") + fact("input_bytes") - cache) : 0;
  const double compute = counted ? flops / rates.gflops * 1e-6 : 0,
               memory = counted ? from_memory / rates.gbytes_per_s * 1e-6 : 0;
  const double limit = std::max(compute, memory);
  const auto if_any = [](double value) { return value > 0 ? OptionalNumber(value) : std::nullopt; };
  return LimitFacts{.gflops = rates.gflops,
                    .gbytes_per_s = rates.gbytes_per_s,
                    .quiet = rates.quiet,
                    .cache_bytes = if_any(cache),
                    .memory_bytes = from_memory,
                    .compute_ms = if_any(compute),
                    .memory_ms = if_any(memory),
                    .limit_ms = if_any(limit),
                    .kind = limit <= 0          ? ""
                            : memory >= compute ? "bound"
                                                : "roofline"};
}

// Whether the case can be judged at all, and what would help.
void add_reliability(TrustFacts& trust, const store::LoadFacts& load, const CaseStatistics& statistics) {
  trust.reliable = statistics.reliable();
  // With every core taken one thread is no better off.
  const auto& room = statistics.room();
  trust.one_thread_fits =
      room.threads > 1 && !stats::crowded({1, room.cores, room.processors}, std::max(load.most(), load.taken()));
}

TrustFacts trust_of(const store::Case& run_case, const CaseStatistics& statistics) {
  // The least favourable level decides what this run could have seen.
  double visible = 0;
  std::optional<int> compared;
  const auto reference = statistics.reference();
  for (std::size_t i = 0; reference && i < statistics.measured().size(); ++i) {
    if (i == *reference || statistics.measured()[i]->info.harness) continue;
    const auto comparison = statistics.compare(*reference, i);
    compared = std::min(compared.value_or(comparison.restarts()), comparison.restarts());
    visible = std::max(visible, statistics.smallest_visible(comparison));
  }
  const auto& source = run_case.trust.process_sigma_source;
  TrustFacts trust{.restarts = std::max(run_case.trust.restarts.value_or(0), statistics.restarts_begun()),
                   .restarts_compared = compared,
                   .most_process_effect_percent = stats::most_process_sigma * 100,
                   .process_effect_percent = statistics.sigma() * 100,
                   .process_effect_source = source.empty() ? "assumed" : source,
                   .smallest_visible_percent = visible > 0 ? finite(visible * 100) : std::nullopt,
                   .blocks = statistics.blocks(),
                   .disturbed_blocks = statistics.disturbed_blocks(),
                   .minimum_effect_percent = statistics.minimum() * 100,
                   .together = statistics.together()};
  add_load(trust, run_case.trust.load);
  add_reliability(trust, run_case.trust.load, statistics);
  return trust;
}

// Rows beside themselves, of a run with --aa.
AaTotal aa_total(const std::vector<RowResult>& rows) {
  AaTotal total;
  for (const auto& row : rows) {
    if (!row.aa) continue;
    ++total.comparisons;
    total.false_alarms += row.aa->verdict == RatioVerdict::faster || row.aa->verdict == RatioVerdict::slower;
  }
  total.bound_percent = finite(stats::binomial_upper_bound(total.false_alarms, total.comparisons) * 100);
  return total;
}

// Each level that was measured in the first environment that it has a number in and in another.
std::vector<AcrossEnvironments> across_environments(const CaseStatistics& statistics) {
  std::vector<AcrossEnvironments> all;
  std::map<std::string, std::size_t> first;  // of each level and variant
  const auto& rows = statistics.measured();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i]->environment.empty()) continue;
    const auto [place, is_first] = first.emplace(rows[i]->level_and_variant(), i);
    if (is_first) continue;
    all.push_back({.level = rows[i]->level,
                   .variant = rows[i]->variant,
                   .from = rows[place->second]->environment,
                   .to = rows[i]->environment,
                   .ratio = statistics.ratio(place->second, i)});
  }
  return all;
}

// What a setting is, in a word.
std::string shown_setting(const nlohmann::json& settings, const char* name) {
  const auto it = settings.is_object() ? settings.find(name) : settings.end();
  if (!settings.is_object() || it == settings.end() || it->is_null()) return "not reported";
  if (it->is_boolean()) return it->get<bool>() ? "yes" : "no";
  return it->is_string() ? it->get<std::string>() : it->dump();
}

class LedgerBuilder {
 public:
  LedgerBuilder(const store::Run& run, const CaseStatistics& statistics) : run_(run), statistics_(statistics) {}

  // Into a row; nothing where no level that it could come from was measured.
  std::optional<LedgerEdge> edge_into(const store::Row& row, bool recommended) const {
    const auto origin = origin_of(row, recommended);
    const auto a = origin.from, b = statistics_.index_of(row.name());
    if (!a || !b || *a == *b) return std::nullopt;
    const auto* from = statistics_.measured()[*a];
    const auto comparison = statistics_.compare(*a, *b);
    auto differs = origin.between;
    if (!row.info.peer)
      for (auto& setting : setting_differences(from->settings, row.settings)) differs.push_back(std::move(setting));
    return LedgerEdge{.from = from->name(),
                      .to = row.name(),
                      .kind = row.info.peer     ? EdgeKind::peer
                              : differs.empty() ? EdgeKind::step
                                                : EdgeKind::differs,
                      .changes = origin.changes,
                      .difference_ms = Estimate(statistics_.difference_ms(*a, *b)),
                      .ratio = Estimate(comparison.ratio()),
                      .verdict = verdict_of(statistics_.direction(comparison)),
                      .differs = differs};
  }

 private:
  // Where the arrow into a level begins, and what more than the level's own change lies between.
  struct Origin {
    std::optional<std::size_t> from;
    std::string changes;
    std::vector<std::string> between;
  };

  // A level comes from the one that its level.json names, a variant from its level, a peer from the reference. Where
  // that was not measured, the recommended level and those that name one come from the reference, by more than one
  // step.
  Origin origin_of(const store::Row& row, bool recommended) const {
    const auto reference = reference_beside(row);
    if (row.info.peer) return {reference, "", {}};
    const bool variant = row.variant != "default";
    const auto named = variant ? row.level : row.info.from;
    Origin origin{beside(row, named), variant ? row.info.default_text : row.info.changes, {}};
    if (origin.from || !reference || (named.empty() && !recommended)) return origin;
    origin.from = reference;
    origin.between = {named.empty() ? std::string("more than one step: none of the levels measured leads to it")
                                    : "more than one step: " + named + " was not measured"};
    return origin;
  }

  // A measured level in the environment of a row; of a row that has none, what has none either or was captured beside
  // it.
  std::optional<std::size_t> beside(const store::Row& row, const std::string& level) const {
    const auto in = [&](const std::string& environment) {
      return statistics_.index_of(core::ParticipantId{.level = level, .environment = environment}.name());
    };
    if (const auto here = in(row.environment)) return here;
    if (!row.environment.empty()) return statistics_.index_of(level);
    return run_.environments.empty() ? std::nullopt : in(lookup::text(run_.environments.front(), "name"));
  }

  // Edges stay within one environment: the reference's level in that of a row.
  std::optional<std::size_t> reference_beside(const store::Row& row) const {
    const auto reference = statistics_.reference();
    if (!reference || row.environment.empty()) return reference;
    return beside(row, statistics_.measured()[*reference]->level_and_variant());
  }

  const store::Run& run_;
  const CaseStatistics& statistics_;
};

}  // namespace

CaseResult case_result(const store::Run& run, const store::Case& run_case, const CaseStatistics& statistics) {
  const auto& bundle = run_case.bundle;
  const auto whole = [&](const char* name) { return outside::as_integer(lookup::at(bundle, name)); };
  CaseResult out{.id = run_case.id,
                 .key = run_case.key,
                 .network_hash = run_case.network,
                 .question = lookup::at(bundle, "case"),
                 .model = model_facts(bundle),
                 .input_source = lookup::text(bundle, "input_source"),
                 .weight_source = lookup::text(bundle, "weight_source"),
                 .network = lookup::at(bundle, "network"),
                 .flops = whole("flops"),
                 .parameters = whole("parameters"),
                 .weight_bytes = whole("weight_bytes"),
                 .flops_uncounted = uncounted_of(bundle),
                 .reference_level = run_case.reference_level,
                 .limits = limits_of(run, run_case),
                 .trust = trust_of(run_case, statistics),
                 .across_environments = across_environments(statistics)};
  for (const auto& row : run_case.rows) out.rows.push_back(row_result(run, run_case, row, statistics));
  if (run.settings.aa) out.aa = aa_total(out.rows);
  return out;
}

void add_load(TrustFacts& trust, const store::LoadFacts& load) {
  const auto percent = [](OptionalNumber share) { return share ? OptionalNumber(*share * 100) : std::nullopt; };
  trust.others_begin_percent = percent(load.begin);
  trust.others_percent = percent(load.others);
  trust.host_percent = percent(load.steal);
  trust.other_run = load.other_run;
}

Ledger ledger_of(const store::Run& run, const CaseStatistics& statistics, const std::string& recommended) {
  Ledger ledger;
  for (const auto* row : statistics.measured()) {
    const bool is_recommended = row->name() == recommended;
    if (row->info.harness || (row->variant != "default" && !is_recommended)) continue;
    if (auto edge = LedgerBuilder(run, statistics).edge_into(*row, is_recommended))
      ledger.edges.push_back(std::move(*edge));
  }
  return ledger;
}

std::vector<std::string> setting_differences(const nlohmann::json& from, const nlohmann::json& to) {
  std::vector<std::string> result;
  for (const std::string name : {"layout", "precision", "freezing", "threads"}) {
    const auto a = shown_setting(from, name.c_str()), b = shown_setting(to, name.c_str());
    const bool free_layout = name == "layout" && (a == "any" || b == "any");
    if (a != b && !free_layout) result.push_back(name + ": " + a + ", " + b);
  }
  return result;
}

}  // namespace strata::analysis
