// SPDX-License-Identifier: Apache-2.0
#include "report/view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "measure/turns.hpp"
#include "plan/command.hpp"
#include "report/accuracy.hpp"
#include "report/case_statistics.hpp"
#include "report/clients.hpp"
#include "report/dynamic.hpp"
#include "report/estimate.hpp"
#include "report/ledger.hpp"
#include "report/sentence.hpp"
#include "report/slo.hpp"
#include "stats/compare.hpp"

namespace strata::report {
using Json = nlohmann::json;
namespace {

// What JSON cannot hold (infinite, not a number) is unknown: null.
Json summary(std::vector<double> ms, double estimate) {
  const auto s = stats::summarise(ms);
  return {{"estimate", finite(estimate)}, {"median", finite(s.median)}, {"p90", finite(s.p90)},
          {"p99", finite(s.p99)},         {"min", finite(s.min)},       {"samples", s.count}};
}

// What shortens a reason to the eight words that a row has room for.
std::string first_words(const std::string& text, int most) {
  std::string out;
  int words = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n' || (c == ' ' && ++words == most)) return out;
    out += c;
  }
  return out;
}

class CaseView {
 public:
  CaseView(const store::Run& run, const store::Case& one) : run_(run), case_(one), numbers_(run, one) {}
  Json build();

 private:
  Json startup(const store::Row& row) const;
  Json shipped(const store::Row& row) const;
  Json row_json(const store::Row& row);
  void add_samples(Json& out, const store::Row& row, std::size_t i);
  Json blocks_json(const store::Row& row, const std::vector<std::string>& why) const;
  Json ledger() const;
  Json trust() const;
  Json limits() const;
  Json aa_total() const;
  std::string next_command(const Json& said, const Json& rows) const;

  const store::Run& run_;
  const store::Case& case_;
  CaseStatistics numbers_;
  int disturbed_ = 0, total_ = 0;
};

Json CaseView::startup(const store::Row& row) const {
  Json out;
  for (const char* part : {"process_ms", "library_ms", "load_ms", "build_ms", "weights_ms", "first_iteration_ms"}) {
    std::vector<double> values;
    for (const auto& start : row.start_up)
      if (!start.value("cold", false) && start.contains(part)) values.push_back(start.value(part, 0.0));
    out[part] = finite(stats::median(values));
  }
  out["again_ms"] = finite(numbers_.start_range(row).value);
  const auto first = row.info.value("first_ever", Json());
  out["first_ever_ms"] = first.is_object() ? first.value("first_ever_ms", Json()) : Json();
  out["prepare_ms"] = first.is_object() && first.value("prepare_ms", 0.0) > 0 ? first["prepare_ms"] : Json();
  return out;
}

// Everything that goes to another machine: the artefact, and the code that the process mapped from outside the system.
Json CaseView::shipped(const store::Row& row) const {
  const auto libraries = row.info.value("libraries", Json());
  if (!libraries.is_object() || !row.artefact_bytes) return {};
  return {{"bytes", libraries.value("bytes", std::int64_t{0}) + *row.artefact_bytes},
          {"libraries_bytes", libraries["bytes"]},
          {"artefact_bytes", *row.artefact_bytes},
          {"libraries", libraries["files"]}};
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
  if (!run_.settings.value("aa", false)) return {};
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
  std::vector<double> wall, latency;
  double cpu_ns = 0, iterations = 0;
  bool has_cpu = true;
  for (const auto& block : row.blocks) {
    if (block.instance != 0) continue;
    for (const auto ns : block.wall_ns) wall.push_back(static_cast<double>(ns) * 1e-6);
    for (const auto ns : block.latency_ns) latency.push_back(static_cast<double>(ns) * 1e-6);
    has_cpu = has_cpu && block.cpu_ns.has_value();
    cpu_ns += static_cast<double>(block.cpu_ns.value_or(0));
    iterations += static_cast<double>(block.wall_ns.size());
  }
  const double estimate = numbers_.estimate_ms(i), ratio_of_medians = stats::median(latency) / stats::median(wall);
  out["end_to_end_ms"] = summary(wall, estimate);
  out["latency_ms"] = summary(latency, estimate * ratio_of_medians);
  out["throughput_per_s"] = finite(case_.canonical.value("batch", 1) * 1000.0 / estimate);
  if (case_.canonical.value("mode", "infer") == "train") {
    out["steps_per_s"] = finite(1000.0 / estimate);
    out["phases"] = row.info.value("phases", Json());
  }
  out["cpu_ms"] = has_cpu && iterations > 0 ? finite(cpu_ns / iterations * 1e-6) : Json();
  out["ratio"] = numbers_.ratio(numbers_.reference(), i);
  out["break_even"] = numbers_.break_even(numbers_.reference(), i);
  out["break_even_once"] = numbers_.break_even_once(numbers_.reference(), i);
  if (numbers_.is_tuned(i))
    out["tuned"] = {{"ratio", numbers_.ratio(numbers_.tuned_reference(), i)},
                    {"break_even", numbers_.break_even(numbers_.tuned_reference(), i)},
                    {"break_even_once", numbers_.break_even_once(numbers_.tuned_reference(), i)}};
  const auto bars = stats::histogram(wall);
  out["histogram"] = {{"edges_ms", bars.edges}, {"counts", bars.counts}};
  const auto why = measure::disturbances(row, numbers_.threads());
  for (const auto& reason : why) disturbed_ += !reason.empty();
  total_ += static_cast<int>(why.size());
  out["blocks"] = blocks_json(row, why);
  if (run_.settings.value("aa", false)) {
    const auto comparison = numbers_.aa(row);
    out["aa"] = {{"ratio", interval(comparison.ratio())},
                 {"verdict", std::string(stats::to_string(numbers_.direction(comparison)))}};
  }
}

Json CaseView::row_json(const store::Row& row) {
  Json out{{"level", row.level},
           {"variant", row.variant},
           {"title", row.info.value("title", "")},
           {"rank", row.info.value("rank", 0)},
           {"language", row.info.value("language", "")},
           {"peer", row.info.value("peer", false)},
           {"harness", row.info.value("harness", false)},
           {"reference", row.name() == case_.reference_level},
           {"state", row.state},
           {"reason", row.reason},
           {"reason_short", row.info.value("reason_short", first_words(row.reason, 8))},
           {"hint", row.hint},
           {"log_tail", row.log_tail},
           {"repeat", row.repeat},
           {"default", row.info.value("default", "")},
           {"settings", row.settings},
           {"memory", row.memory},
           {"startup", row.start_up.empty() ? Json() : startup(row)},
           {"disk_bytes", row.disk_bytes ? Json(*row.disk_bytes) : Json()},
           {"artefact_bytes", row.artefact_bytes ? Json(*row.artefact_bytes) : Json()},
           {"proof", row.proof},
           {"deep", row.info.value("deep", Json())},
           {"tuning", row.info.value("tuning", Json())},
           {"tuned", nullptr},
           {"clients", clients_json(row.info.value("clients", Json()), case_.canonical.value("batch", 1))},
           {"facts", row.info.value("facts", Json())},
           {"lines", row.info.value("lines", Json())},
           {"shipped", shipped(row)},
           {"dynamic", dynamic_view(row, numbers_.threads(), numbers_.sigma(), numbers_.minimum())}};
  for (const char* numbers : {"end_to_end_ms", "latency_ms", "throughput_per_s", "steps_per_s", "phases", "cpu_ms",
                              "ratio", "break_even", "break_even_once", "histogram", "aa"})
    out[numbers] = nullptr;
  out["blocks"] = Json::array();
  if (row.state == "measured")
    if (const auto i = numbers_.index_of(row.name())) add_samples(out, row, *i);
  return out;
}

// An edge is a step only where what it does not change is the same on both sides; otherwise it says what differs.
Json CaseView::ledger() const {
  Json edges = Json::array();
  for (const auto* row : numbers_.measured()) {
    if (row->info.value("harness", false) || row->variant != "default") continue;
    const bool peer = row->info.value("peer", false);
    const std::string from = peer ? case_.reference_level : row->info.value("from", "");
    if (from.empty() || from == row->name()) continue;
    const auto a = numbers_.index_of(from), b = numbers_.index_of(row->name());
    if (!a || !b) continue;
    const auto comparison = numbers_.compare(*a, *b);
    const auto differs =
        peer ? std::vector<std::string>{} : setting_differences(numbers_.measured()[*a]->settings, row->settings);
    const char* kind = peer ? "peer" : differs.empty() ? "step" : "differs";
    edges.push_back({{"from", from},
                     {"to", row->level},
                     {"kind", kind},
                     {"changes", peer ? "" : row->info.value("changes", "")},
                     {"difference_ms", interval(numbers_.difference_ms(*a, *b))},
                     {"ratio", interval(comparison.ratio())},
                     {"verdict", std::string(stats::to_string(numbers_.direction(comparison)))},
                     {"differs", differs}});
  }
  return {{"edges", edges}};
}

Json CaseView::limits() const {
  const double gflops = case_.limits.value("gflops", 0.0), bandwidth = case_.limits.value("gbytes_per_s", 0.0);
  if (gflops <= 0 || bandwidth <= 0) return {};
  // A training step computes about three times: outputs, gradients of activations, gradients of weights.
  const double flops = case_.bundle.value("flops", 0.0) * (case_.canonical.value("mode", "infer") == "train" ? 3 : 1);
  // Each weight is read once and each input and output moved once: what no program can avoid.
  const double bytes = case_.bundle.value("weight_bytes", 0.0) + case_.bundle.value("input_bytes", 0.0);
  const double compute = flops / gflops * 1e-6, memory = bytes / bandwidth * 1e-6;
  return {{"gflops", gflops},
          {"gbytes_per_s", bandwidth},
          {"compute_ms", compute},
          {"memory_ms", memory},
          {"limit_ms", std::max(compute, memory)}};
}

Json CaseView::trust() const {
  // The least favourable level decides what this run could have seen.
  double visible = 0;
  int restarts = 0;
  const auto reference = numbers_.reference();
  for (std::size_t i = 0; reference && i < numbers_.measured().size(); ++i) {
    if (i == *reference || numbers_.measured()[i]->info.value("harness", false)) continue;
    const auto comparison = numbers_.compare(*reference, i);
    restarts = std::max(restarts, comparison.restarts());
    visible = std::max(visible, numbers_.smallest_visible(comparison));
  }
  return {{"restarts", restarts ? restarts : case_.trust.value("restarts", 0)},
          {"process_effect_percent", numbers_.sigma() * 100},
          {"process_effect_source", case_.trust.value("process_sigma_source", "assumed")},
          {"smallest_visible_percent", visible > 0 ? finite(visible * 100) : Json()},
          {"blocks", total_},
          {"disturbed_blocks", disturbed_},
          {"minimum_effect_percent", numbers_.minimum() * 100},
          {"together", numbers_.together()}};
}

// What a reader would do next: take the winner away, look closer at what is unequal, resolve what is open, or read the
// report.
std::string CaseView::next_command(const Json& said, const Json& rows) const {
  const bool exports = case_.canonical.value("maths", "fp32") == "fp32";  // other modes have no export
  if (exports && said["verdict"] == "move" && case_.canonical.value("mode", "infer") == "infer" &&
      case_.bundle.contains("spec"))
    for (const auto& row : case_.rows)
      if (row.level == said["level"] && row.variant == "default" && row.info.contains("artefact"))
        return plan::export_command(case_.bundle["spec"], case_.bundle["model"].value("name", "model"), row.level,
                                    run_.command);
  for (const auto& row : rows)
    if (row["state"] == "unequal" && !run_.settings.value("deep", false) &&
        case_.canonical.value("mode", "infer") == "infer")
      return row.value("repeat", "") + " --deep";
  for (const auto& row : rows)
    if (row["ratio"].is_object() && row["ratio"].value("resolve", Json()).is_object())
      return row["ratio"]["resolve"].value("command", "");
  return "./strata report " + run_.run_id;
}

Json CaseView::build() {
  const auto& b = case_.bundle;
  Json rows = Json::array();
  for (const auto& row : case_.rows) rows.push_back(row_json(row));
  Json out{{"id", case_.id},
           {"hash", case_.hash},
           {"case", case_.canonical},
           {"model", b.value("model", Json::object())},
           {"input_source", b.value("input_source", "")},
           {"weight_source", b.value("weight_source", "")},
           {"flops", b.value("flops", Json())},
           {"parameters", b.value("parameters", Json())},
           {"weight_bytes", b.value("weight_bytes", Json())},
           {"reference_level", case_.reference_level},
           {"limits", limits()},
           {"trust", trust()},
           {"ledger", ledger()},
           {"aa", aa_total()}};
  out["rows"] = std::move(rows);
  out["headline"] = numbers_.has_tuned() ? tuned_headline(out) : headline(out);
  out["next_command"] = next_command(out["headline"], out["rows"]);
  return out;
}

}  // namespace

Json view(const store::Run& run) {
  Json warnings = Json::array(), cases = Json::array();
  for (const auto& warning : run.warnings)
    warnings.push_back({{"id", warning.id}, {"what", warning.what}, {"advice", warning.advice}});
  for (const auto& one : run.cases) cases.push_back(CaseView(run, one).build());
  add_slo(run, cases);
  return {{"schema", "strata.run/1"},
          {"run",
           {{"id", run.run_id},
            {"name", run.name.empty() ? Json() : Json(run.name)},
            {"started", run.started},
            {"command", run.command},
            {"version", run.version},
            {"finished", !run.finished.empty()},
            {"interrupted", run.interrupted},
            {"seed", run.seed},
            {"preset", run.settings.value("preset", "")},
            {"wall_s", run.settings.value("wall_s", Json())},
            {"restarts", run.settings.value("restarts", Json())},
            {"budget_s", run.settings.value("budget_s", Json())},
            {"precision", run.settings.value("precision", Json())},
            {"aa", run.settings.value("aa", false)},
            {"deep", run.settings.value("deep", false)},
            {"tuned", run.settings.value("tuned", false)},
            {"clients", run.settings.value("clients", Json())},
            {"dynamic", run.settings.value("dynamic", Json())},
            {"slo", run.settings.value("slo", Json())},
            {"eval", run.settings.value("eval", Json())}}},
          {"accuracy", accuracy(run, cases)},
          {"machine", run.machine},
          {"environments", run.environments},
          {"warnings", warnings},
          {"cases", cases}};
}

}  // namespace strata::report
