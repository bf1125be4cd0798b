// SPDX-License-Identifier: Apache-2.0
#include "report/view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/blocks.hpp"
#include "analysis/case_statistics.hpp"
#include "analysis/estimate.hpp"
#include "analysis/judge_stored.hpp"
#include "analysis/limit.hpp"
#include "analysis/open_batch.hpp"
#include "analysis/row_numbers.hpp"
#include "analysis/warnings.hpp"
#include "common/outside.hpp"
#include "level/level.hpp"
#include "report/access.hpp"
#include "report/accuracy.hpp"
#include "report/clients.hpp"
#include "report/environments.hpp"
#include "report/format.hpp"
#include "report/sentence.hpp"
#include "report/settings.hpp"
#include "report/shards.hpp"
#include "report/slo.hpp"
#include "requests/commands.hpp"
#include "stats/compare.hpp"
#include "store/run_state.hpp"

namespace strata::report {
using Json = nlohmann::json;
using analysis::by_restart;
using analysis::CaseStatistics;
using analysis::finite;
using analysis::interval;
namespace {

// What JSON cannot hold (infinite, not a number) is unknown: null.
Json summary(const std::vector<double>& ms, const stats::ShownTime& estimate) {
  const auto s = stats::summarise(ms);
  return {{"estimate", finite(estimate.milliseconds)},
          {"is_median", estimate.is_median},
          {"median", finite(s.median)},
          {"p90", finite(s.p90)},
          {"p99", finite(s.p99)},
          {"min", finite(s.min)},
          {"samples", s.count}};
}

class CaseView {
 public:
  CaseView(const store::Run& run, const store::Case& run_case) : run_(run), case_(run_case), numbers_(run, run_case) {}
  Json build();

 private:
  bool is_train() const { return case_.question.mode == core::Mode::train; }
  double batch() const { return static_cast<double>(case_.question.batch); }
  Json startup(const store::Row& row) const;
  Json shipped(const store::Row& row) const;
  Json row_json(const store::Row& row);
  void add_samples(Json& out, const store::Row& row, std::size_t i);
  Json blocks_json(const store::Row& row, const std::vector<std::string>& why) const;
  struct Origin;
  Origin origin_of(const store::Row& row, bool recommended) const;
  std::optional<std::size_t> beside(const store::Row& row, const std::string& level) const;
  std::optional<std::size_t> reference_beside(const store::Row& row) const;
  Json ledger(const std::string& recommended) const;
  Json trust() const;
  Json limits() const;
  double cache_bytes() const;
  void add_load(Json& trust) const;
  Json instead_of() const;
  Json aa_total() const;
  std::string next_command(const Json& headline_json, const Json& trust, const Json& rows) const;
  std::string with_one_thread() const;  // the run's command
  std::string command_to_take(const std::string& level) const;

  const store::Run& run_;
  const store::Case& case_;
  CaseStatistics numbers_;
  int disturbed_ = 0, total_ = 0;
};

Json CaseView::startup(const store::Row& row) const {
  Json out;
  for (const char* part : {"process_ms", "library_ms", "load_ms", "build_ms", "weights_ms", "first_iteration_ms"})
    out[part] = finite(analysis::start_part(row, part));
  out["warm_start_ms"] = finite(numbers_.start_range(row).value);
  out["cold_start_ms"] = row.info.cold_start ? Json(row.info.cold_start->total_ms) : Json();
  const auto prepare = analysis::cold_start(row, &store::ColdStart::prepare_ms);
  out["prepare_ms"] = prepare ? Json(*prepare) : Json();
  return out;
}

// Everything that goes to another machine: the artefact, and the code that the process mapped from outside the system.
Json CaseView::shipped(const store::Row& row) const {
  const auto bytes = analysis::shipped_bytes(row);
  if (!bytes) return {};
  return {{"bytes", *bytes},
          {"libraries_bytes", row.info.libraries->bytes},
          {"artefact_bytes", *row.artefact_bytes},
          {"libraries", store::to_json(row.info.libraries->files)}};
}

Json CaseView::blocks_json(const store::Row& row, const std::vector<std::string>& why) const {
  std::map<int, std::int64_t> began;  // of each restart
  for (const auto* other : numbers_.measured())
    for (const auto& block : other->blocks) {
      const auto [it, fresh] = began.emplace(block.restart, block.start_ns);
      if (!fresh) it->second = std::min(it->second, block.start_ns);
    }
  Json out = Json::array();
  for (std::size_t i = 0; i < row.blocks.size(); ++i) {
    const auto& block = row.blocks[i];
    if (block.instance != 0) continue;
    const std::vector<double> walls(block.wall_ns.begin(), block.wall_ns.end());
    const auto start = began.contains(block.restart) ? began[block.restart] : block.start_ns;
    out.push_back({{"restart", block.restart},
                   {"round", block.round},
                   {"position", block.position},
                   {"time_s", static_cast<double>(block.start_ns - start) * 1e-9},
                   {"median_ms", stats::median(walls) * 1e-6},
                   {"disturbed", !why[i].empty()},
                   {"why", why[i]}});
  }
  return out;
}

Json CaseView::aa_total() const {
  if (!run_.settings.aa) return {};
  int comparisons = 0, alarms = 0;
  for (const auto* row : numbers_.measured()) {
    const auto direction = numbers_.direction(numbers_.aa(*row));
    ++comparisons;
    alarms += direction == stats::Direction::faster || direction == stats::Direction::slower;
  }
  return {{"comparisons", comparisons},
          {"false_alarms", alarms},
          {"bound_percent", stats::binomial_upper_bound(alarms, comparisons) * 100}};
}

void CaseView::add_samples(Json& out, const store::Row& row, std::size_t i) {
  const auto own = analysis::row_numbers(numbers_, i, batch());
  out["end_to_end_ms"] = summary(own.wall_ms, own.time);
  out["latency_ms"] = summary(own.latency_ms, own.latency);
  out["throughput_per_s"] = finite(own.throughput_per_s);
  if (is_train()) {
    out["steps_per_s"] = finite(1000.0 / own.time.milliseconds);
    out["phases"] = row.info.phases ? store::to_json(*row.info.phases) : Json();
  }
  out["cpu_ms"] = own.cpu_ms ? finite(*own.cpu_ms) : Json();
  out["ratio"] = numbers_.ratio(numbers_.reference(), i);
  out["break_even"] = numbers_.break_even(numbers_.reference(), i);
  out["break_even_once"] = numbers_.break_even_once(numbers_.reference(), i);
  if (numbers_.is_tuned(i))
    out["tuned"] = {{"ratio", numbers_.ratio(numbers_.tuned_reference(), i)},
                    {"break_even", numbers_.break_even(numbers_.tuned_reference(), i)},
                    {"break_even_once", numbers_.break_even_once(numbers_.tuned_reference(), i)}};
  const auto bars = stats::histogram(own.wall_ms);
  out["histogram"] = {{"edges_ms", bars.edges}, {"counts", bars.counts}};
  const auto why = analysis::disturbances(row, numbers_.room());
  for (const auto& reason : why) disturbed_ += !reason.empty();
  total_ += static_cast<int>(why.size());
  out["blocks"] = blocks_json(row, why);
  if (run_.settings.aa) {
    const auto comparison = numbers_.aa(row);
    auto assumed = comparison;
    assumed.log_ratio = comparison.assumed_only;
    out["aa"] = {{"ratio", interval(comparison.ratio())},
                 {"verdict", std::string(stats::to_string(numbers_.direction(comparison)))},
                 {"rests_on", std::string(stats::to_string(comparison.half_width.basis))},
                 {"learned", analysis::learned_from_runs(comparison)},
                 {"by_restart", by_restart(comparison)},
                 {"if_assumed",
                  {{"ratio", interval(assumed.ratio())},
                   {"verdict", std::string(stats::to_string(numbers_.direction(assumed)))}}}};
  }
}

Json CaseView::row_json(const store::Row& row) {
  Json out{{"level", row.level},
           {"variant", row.variant},
           {"environment", environment_json(row)},
           {"title", row.info.title},
           {"rank", row.info.rank},
           {"language", row.info.language},
           {"peer", row.info.peer},
           {"harness", row.info.harness},
           {"reference", row.name() == case_.reference_level},
           {"state", row.state},
           {"reason", row.reason},
           {"reason_short", row.info.reason_short.value_or(first_sentence(row.reason))},
           {"hint", row.hint},
           {"log_tail", row.log_tail},
           {"repeat", row.repeat},
           {"default", row.info.default_text},
           {"settings", settings_beside(row.settings, row.info.facts)},
           {"memory", row.memory},
           {"startup", row.start_up.empty() ? Json() : startup(row)},
           {"disk_bytes", row.disk_bytes ? Json(*row.disk_bytes) : Json()},
           {"artefact_bytes", row.artefact_bytes ? Json(*row.artefact_bytes) : Json()},
           {"proof", row.proof},
           {"deep", row.info.deep},
           {"tuning", row.info.tuning},
           {"tuned", nullptr},
           {"clients", clients_json(row.info.clients, batch(), numbers_.sigma(), numbers_.reliable())},
           {"facts", row.info.facts},
           {"lines", row.info.lines ? store::to_json(*row.info.lines) : Json()},
           {"shipped", shipped(row)},
           {"dynamic",
            analysis::dynamic_view(row, numbers_.room(), numbers_.sigma(), numbers_.minimum(), numbers_.reliable())}};
  for (const char* numbers : {"end_to_end_ms", "latency_ms", "throughput_per_s", "steps_per_s", "phases", "cpu_ms",
                              "ratio", "break_even", "break_even_once", "histogram", "aa"})
    out[numbers] = nullptr;
  out["blocks"] = Json::array();
  if (row.state == State::measured)
    if (const auto i = numbers_.index_of(row.name())) add_samples(out, row, *i);
  return out;
}

// Where the arrow into a level begins, and what more than the level's own change lies between.
struct CaseView::Origin {
  std::optional<std::size_t> from;
  std::string changes;
  std::vector<std::string> between;
};

// A measured level in the environment of a row; of a row that has none, what has none either or was captured beside it.
std::optional<std::size_t> CaseView::beside(const store::Row& row, const std::string& level) const {
  if (const auto here = numbers_.index_of(core::ParticipantId{.level = level, .environment = row.environment}.name()))
    return here;
  if (!row.environment.empty()) return numbers_.index_of(level);
  const Json& first = run_.environments.empty() ? Json() : run_.environments.front();
  return numbers_.index_of(core::ParticipantId{.level = level, .environment = text(first, "name")}.name());
}

// The ledger draws edges within one environment: the reference's level in that of a row.
std::optional<std::size_t> CaseView::reference_beside(const store::Row& row) const {
  const auto reference = numbers_.reference();
  if (!reference || row.environment.empty()) return reference;
  return beside(row, numbers_.measured()[*reference]->level_and_variant());
}

// A level comes from the one that its level.json names, a variant from its level, a peer from the reference. Where that
// was not measured, the recommended level and those that name one come from the reference, by more than one step.
CaseView::Origin CaseView::origin_of(const store::Row& row, bool recommended) const {
  const auto reference = reference_beside(row);
  if (row.info.peer) return {reference, "", {}};
  const bool variant = row.variant != "default";
  const auto named = variant ? row.level : row.info.from;
  Origin origin{beside(row, named), variant ? row.info.default_text : row.info.changes, {}};
  if (origin.from || !reference || (named.empty() && !recommended)) return origin;
  origin.from = reference;
  origin.between = {named.empty() ? std::string("more than one step: none of the levels measured leads to it")
                                  : fmt::format("more than one step: {} was not measured", named)};
  return origin;
}

// An edge is a step only where what it does not change is the same on both sides; otherwise it says what differs.
Json CaseView::ledger(const std::string& recommended) const {
  Json edges = Json::array();
  for (const auto* row : numbers_.measured()) {
    const bool is_recommended = row->name() == recommended;
    if (row->info.harness || (row->variant != "default" && !is_recommended)) continue;
    const bool peer = row->info.peer;
    const auto origin = origin_of(*row, is_recommended);
    const auto a = origin.from, b = numbers_.index_of(row->name());
    if (!a || !b || *a == *b) continue;
    const auto* from = numbers_.measured()[*a];
    const auto comparison = numbers_.compare(*a, *b);
    auto differs = origin.between;
    if (!peer)
      for (auto& setting : setting_differences(from->settings, row->settings)) differs.push_back(std::move(setting));
    const char* kind = peer ? "peer" : differs.empty() ? "step" : "differs";
    edges.push_back({{"from", from->name()},
                     {"to", row->name()},
                     {"kind", kind},
                     {"changes", origin.changes},
                     {"difference_ms", interval(numbers_.difference_ms(*a, *b))},
                     {"ratio", interval(comparison.ratio())},
                     {"verdict", std::string(stats::to_string(numbers_.direction(comparison)))},
                     {"differs", differs}});
  }
  return {{"edges", edges}};
}

// What the machine's rates say of the least time. `kind`: "bound" where no program can take less, which is true of
// weights and inputs that no cache holds; "roofline" for the arithmetic, of which Winograd and fused operations do less
// than is counted. Nothing where neither says anything.
Json CaseView::limits() const {
  const auto rates = case_.limits.value_or(store::Limits{});
  if (rates.gflops <= 0 || rates.gbytes_per_s <= 0) return {};
  const auto fact = [&](const char* name) { return number(case_.bundle, name).value_or(0); };
  // A training step computes about three times: outputs, gradients of activations, gradients of weights.
  const double flops = fact("flops") * (is_train() ? 3 : 1);
  const bool counted = analysis::uncounted_of(case_.bundle).empty();
  const double cache = cache_bytes();
  // Each weight is read once and each input moved once; what the last cache cannot hold comes from memory each time.
  const double from_memory = cache > 0 ? std::max(0.0, fact("weight_bytes") + fact("input_bytes") - cache) : 0;
  const double compute = counted ? flops / rates.gflops * 1e-6 : 0,
               memory = counted ? from_memory / rates.gbytes_per_s * 1e-6 : 0;
  const double limit = std::max(compute, memory);
  return {{"gflops", rates.gflops},
          {"gbytes_per_s", rates.gbytes_per_s},
          {"quiet", rates.quiet},
          {"cache_bytes", cache > 0 ? Json(cache) : Json()},
          {"memory_bytes", from_memory},
          {"compute_ms", compute > 0 ? Json(compute) : Json()},
          {"memory_ms", memory > 0 ? Json(memory) : Json()},
          {"limit_ms", limit > 0 ? Json(limit) : Json()},
          {"kind", limit <= 0 ? Json() : Json(memory >= compute ? "bound" : "roofline")}};
}

// Of the last level, all instances; of one instance where the machine's description is older.
double CaseView::cache_bytes() const {
  const auto all = number(run_.machine, "last_cache_bytes").value_or(0);
  if (all > 0) return all;
  const double cores = number(run_.machine, "cores").value_or(1);
  return std::max(number(run_.machine, "l3_bytes").value_or(0), number(run_.machine, "l2_bytes").value_or(0) * cores);
}

Json CaseView::trust() const {
  // The least favourable level decides what this run could have seen.
  double visible = 0;
  std::optional<int> compared;
  const auto reference = numbers_.reference();
  for (std::size_t i = 0; reference && i < numbers_.measured().size(); ++i) {
    if (i == *reference || numbers_.measured()[i]->info.harness) continue;
    const auto comparison = numbers_.compare(*reference, i);
    compared = std::min(compared.value_or(comparison.restarts()), comparison.restarts());
    visible = std::max(visible, numbers_.smallest_visible(comparison));
  }
  const int begun = std::max(case_.trust.restarts.value_or(0), numbers_.restarts_begun());
  const auto& source = case_.trust.process_sigma_source;
  Json out{{"restarts", begun},
           {"restarts_compared", compared ? Json(*compared) : Json()},
           {"most_process_effect_percent", stats::most_process_sigma * 100},
           {"process_effect_percent", numbers_.sigma() * 100},
           {"process_effect_source", source.empty() ? "assumed" : source},
           {"smallest_visible_percent", visible > 0 ? finite(visible * 100) : Json()},
           {"blocks", total_},
           {"disturbed_blocks", disturbed_},
           {"minimum_effect_percent", numbers_.minimum() * 100},
           {"together", numbers_.together()}};
  add_load(out);
  return out;
}

// What others used of the machine, and whether the case can be judged at all.
void CaseView::add_load(Json& trust) const {
  const auto& load = case_.trust.load;
  const auto& room = numbers_.room();
  trust.update(load_json(case_));
  trust["reliable"] = numbers_.reliable();
  // With every core taken one thread is no better off.
  trust["one_thread_fits"] =
      room.threads > 1 && !stats::crowded({1, room.cores, room.processors}, std::max(load.most(), load.taken()));
}

// The reference that was wanted and has no number.
Json CaseView::instead_of() const {
  const auto& original = case_.trust.reference_wanted;
  if (original.empty() || original == case_.reference_level) return {};
  for (const auto& row : case_.rows)
    if (row.name() == original)
      return {{"level", original},
              {"state", row.state},
              {"reason", row.info.reason_short.value_or(first_sentence(row.reason))}};
  return {{"level", original}, {"state", "skipped"}, {"reason", ""}};
}

// What a reader would do next: end what was cut off, measure where it can be trusted, take the winner away, look closer
// at what is unequal, resolve what is open, or read the report.
std::string CaseView::next_command(const Json& headline_json, const Json& trust, const Json& rows) const {
  if (store::state_of(run_) == store::RunState::interrupted) return "./strata resume " + run_.run_id;
  if (headline_json["verdict"] == "not_reliable")
    return trust["one_thread_fits"] == true ? with_one_thread() : run_.command;
  if (headline_json["verdict"] == "move")
    if (auto command = command_to_take(headline_json["level"]); !command.empty()) return command;
  for (const auto& row : rows)
    if (row["state"] == "unequal" && !run_.settings.deep && !is_train() &&
        run_.settings.dynamic.empty())  // --dynamic and --deep exclude each other
      return row.value("repeat", "") + " --deep";
  for (const auto& row : rows)
    if (row["ratio"].is_object() && row["ratio"].value("resolve", Json()).is_object())
      return row["ratio"]["resolve"].value("command", "");
  return "./strata report " + run_.run_id;
}

std::string CaseView::with_one_thread() const {
  auto request = requests::request_of_run(run_.settings);
  if (!request) return run_.command;
  requests::common_of(*request).options.thread_counts = {1};
  return requests::command_of(*request, run_.settings.kept.store);
}

// What writes the recommended level as files of its own; "" where nothing does.
std::string CaseView::command_to_take(const std::string& level) const {
  const auto spec = core::read_spec(at(case_.bundle, "spec"), "spec");
  const auto row = std::find_if(case_.rows.begin(), case_.rows.end(), [&](const auto& r) { return r.name() == level; });
  if (row == case_.rows.end() || !spec) return "";
  const bool exports = case_.question.precision == core::Precision::fp32 && !is_train();  // others have no export
  const bool same_artefact = row->variant == "default" || row->variant == level::kHugePages;
  if (exports && same_artefact && row->info.artefact)
    return requests::export_command(*spec, case_.question.model, row->level, named_beside(run_, *row));
  if (const auto& program = row->info.generate)
    return requests::generate_command(*spec, case_.question.model, {row->level, program->target, program->options},
                                      named_beside(run_, *row).python);
  return "";
}

Json CaseView::build() {
  const auto& b = case_.bundle;
  Json rows = Json::array();
  for (const auto& row : case_.rows) rows.push_back(row_json(row));
  Json out{{"id", case_.id},
           {"key", case_.key},
           {"network_hash", case_.network},
           {"case", at(b, "case")},
           {"model", at(b, "model").is_object() ? at(b, "model") : Json::object()},
           {"input_source", text(b, "input_source")},
           {"weight_source", text(b, "weight_source")},
           {"network", at(b, "network")},
           {"flops", at(b, "flops")},
           {"parameters", at(b, "parameters")},
           {"weight_bytes", at(b, "weight_bytes")},
           {"flops_uncounted", analysis::uncounted_of(b)},
           {"reference_level", case_.reference_level},
           {"reference_instead_of", instead_of()},
           {"limits", limits()},
           {"trust", trust()},
           {"aa", aa_total()},
           {"across_environments", across_environments(numbers_)}};
  out["rows"] = std::move(rows);
  out["headline"] = numbers_.has_tuned() ? tuned_headline(out) : headline(out);
  out["headline"]["sentence"] = ending_words(run_) + text(out, "headline.sentence");
  out["ledger"] = ledger(text(out, "headline.level"));
  out["next_command"] = next_command(out["headline"], out["trust"], out["rows"]);
  return out;
}

}  // namespace

Json view(const store::Run& stored) {
  store::Run run = stored;
  analysis::judge_stored(run);
  const auto state = store::state_of(run);
  const bool is_interrupted = state == store::RunState::interrupted;
  const auto note = analysis::warnings::interrupted_run();
  const auto is_note = [&](const auto& warning) { return warning.id == note.id; };
  if (is_interrupted && std::none_of(run.warnings.begin(), run.warnings.end(), is_note)) run.warnings.push_back(note);
  Json warnings = Json::array(), cases = Json::array();
  for (const auto& warning : run.warnings) {  // each once, however often the run came upon it
    const Json entry{{"id", warning.id},
                     {"case", warning.case_key.empty() ? Json() : Json(warning.case_key)},
                     {"what", warning.what},
                     {"advice", warning.advice}};
    if (std::find(warnings.begin(), warnings.end(), entry) == warnings.end()) warnings.push_back(entry);
  }
  for (const auto& run_case : run.cases) cases.push_back(CaseView(run, run_case).build());
  add_slo(run, cases);
  const auto known = [](const auto& value) { return value ? Json(*value) : Json(); };
  const auto named = [](const std::string& words) { return words.empty() ? Json() : Json(words); };
  return {{"schema", "strata.run/1"},
          {"run",
           {{"id", run.run_id},
            {"name", named(run.name)},
            {"started", run.started},
            {"command", run.command},
            {"version", run.version},
            {"finished", !run.finished.empty()},
            {"interrupted", is_interrupted},
            {"state", store::to_string(state)},
            {"resumed", run.settings.resumed.value_or(0)},
            {"seed", run.seed},
            {"preset", run.settings.effort.preset},
            {"wall_s", known(run.settings.wall_s)},
            {"restarts", known(run.settings.effort.restarts)},
            {"budget_s", known(run.settings.effort.budget_s)},
            {"ci_width", known(run.settings.effort.ci_width)},
            {"aa", run.settings.aa},
            {"deep", run.settings.deep},
            {"tuned", run.settings.tuned},
            {"clients", named(run.settings.clients)},
            {"dynamic", named(run.settings.dynamic)},
            {"slo", named(run.settings.slo)},
            {"eval", named(run.settings.eval)}}},
          {"accuracy", accuracy(run, cases)},
          {"machine", run.machine},
          {"environments", run.environments},
          {"warnings", warnings},
          {"cases", cases}};
}

}  // namespace strata::report
