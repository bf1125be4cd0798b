// SPDX-License-Identifier: Apache-2.0
#include "report/view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "measure/turns.hpp"
#include "plan/command.hpp"
#include "report/accuracy.hpp"
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
  CaseView(const store::Run& run, const store::Case& one)
      : run_(run), case_(one), threads_(one.canonical.value("threads", 1)) {
    sigma_ = one.trust.value("process_sigma", stats::assumed_process_sigma(threads_));
    minimum_ = one.trust.value("minimum_effect", 0.01);
    together_ = one.trust.value("together", true);
    for (const auto& row : one.rows)
      if (row.state == "measured") {
        if (row.name() == one.reference_level) reference_ = measured_.size();
        measured_.push_back(&row);
      }
    blocks_ = measure::medians(measured_, threads_, 0);
    joint_ = stats::joint_estimates(blocks_).milliseconds;
    if (run.settings.value("tuned", false)) find_tuned();
  }
  Json build();

 private:
  stats::Comparison compare(std::size_t reference, std::size_t level) const;
  std::optional<std::size_t> index_of(const std::string& name) const;
  void find_tuned();
  bool is_tuned(std::size_t i) const { return std::find(tuned_.begin(), tuned_.end(), i) != tuned_.end(); }
  double start_again_ms(const store::Row& row) const;
  stats::Interval start_range(const store::Row& row) const;
  Json startup(const store::Row& row) const;
  Json ratio(std::optional<std::size_t> reference, std::size_t i) const;
  Json resolve(const stats::Comparison& comparison) const;
  Json break_even(std::optional<std::size_t> reference, std::size_t i) const;
  Json break_even_once(std::optional<std::size_t> reference, std::size_t i) const;
  Json after_cost(std::size_t reference, std::size_t i, const stats::Interval& extra_ms) const;
  std::optional<stats::Interval> built_ms(const store::Row& row) const;
  Json shipped(const store::Row& row) const;
  Json row_json(const store::Row& row);
  void add_samples(Json& out, const store::Row& row, std::size_t i);
  Json blocks_json(const store::Row& row, const std::vector<std::string>& why) const;
  Json ledger() const;
  Json trust() const;
  Json limits() const;
  Json aa_total() const;
  stats::Comparison aa(const store::Row& row) const;
  std::string next_command(const Json& said, const Json& rows) const;

  const store::Run& run_;
  const store::Case& case_;
  int threads_;
  double sigma_ = 0, minimum_ = 0.01;
  bool together_ = true;
  std::vector<const store::Row*> measured_;
  std::optional<std::size_t> reference_, tuned_reference_;
  std::vector<std::size_t> tuned_;  // of each level its best row, if the run was tuned
  stats::Blocks blocks_;
  std::vector<double> joint_;
  int disturbed_ = 0, total_ = 0;
};

std::optional<std::size_t> CaseView::index_of(const std::string& name) const {
  for (std::size_t i = 0; i < measured_.size(); ++i)
    if (measured_[i]->name() == name) return i;
  return std::nullopt;
}

// A level whose variants were tried is represented by the best of them, every other by its default.
void CaseView::find_tuned() {
  for (std::size_t i = 0; i < measured_.size(); ++i) {
    const auto* row = measured_[i];
    const bool chosen = row->info.value("tuned", false);
    const bool other_chosen = std::any_of(measured_.begin(), measured_.end(), [&](const auto* other) {
      return other->level == row->level && other->info.value("tuned", false);
    });
    if (row->info.value("harness", false) || !(chosen || (!other_chosen && row->variant == "default"))) continue;
    tuned_.push_back(i);
    if (reference_ && row->level == measured_[*reference_]->level) tuned_reference_ = i;
  }
}

stats::Comparison CaseView::compare(std::size_t reference, std::size_t level) const {
  if (together_) return stats::compare(stats::log_differences(blocks_, reference, level), sigma_);
  // Never measured side by side: only the restarts' own medians can be compared.
  const auto per_restart = [&](std::size_t which) {
    std::vector<double> logs;
    for (const auto& restart : blocks_) {
      std::vector<double> values;
      for (const auto& round : restart)
        if (std::isfinite(round[which])) values.push_back(std::log(round[which]));
      if (!values.empty()) logs.push_back(stats::median(values));
    }
    return logs;
  };
  return stats::compare_unpaired(per_restart(reference), per_restart(level), sigma_);
}

// Starts from caches only; the median of several.
stats::Interval CaseView::start_range(const store::Row& row) const {
  std::vector<double> values;
  for (const auto& start : row.start_up)
    if (!start.value("cold", false)) values.push_back(start.value("again_ms", 0.0));
  return stats::range_of(values);
}

double CaseView::start_again_ms(const store::Row& row) const {
  return start_range(row).value;
}

Json CaseView::startup(const store::Row& row) const {
  Json out;
  for (const char* part : {"process_ms", "library_ms", "load_ms", "build_ms", "weights_ms", "first_iteration_ms"}) {
    std::vector<double> values;
    for (const auto& start : row.start_up)
      if (!start.value("cold", false) && start.contains(part)) values.push_back(start.value(part, 0.0));
    out[part] = finite(stats::median(values));
  }
  out["again_ms"] = finite(start_again_ms(row));
  const auto first = row.info.value("first_ever", Json());
  out["first_ever_ms"] = first.is_object() ? first.value("first_ever_ms", Json()) : Json();
  out["prepare_ms"] = first.is_object() && first.value("prepare_ms", 0.0) > 0 ? first["prepare_ms"] : Json();
  return out;
}

// The command and the minutes that would decide what this run could not.
Json CaseView::resolve(const stats::Comparison& comparison) const {
  const auto restarts = stats::restarts_to_resolve(comparison, minimum_);
  if (!restarts || *restarts > 60) return {};
  const double budget = run_.settings.value("budget_s", 60.0),
               per_restart = budget / std::max(1, run_.settings.value("restarts", 2));
  double starts_s = 0;
  for (const auto* row : measured_) starts_s += start_again_ms(*row) / 1000 + 1;
  const double minutes = *restarts * (per_restart + starts_s) / 60;
  const auto command =
      run_.command.find(" --restarts") == std::string::npos && run_.command.find(" --budget") == std::string::npos
          ? fmt::format("{} --restarts {} --budget {:.0f}s", run_.command, *restarts, *restarts * per_restart)
          : std::string();
  if (command.empty()) return {};
  return {{"command", command}, {"minutes", minutes}};
}

Json CaseView::ratio(std::optional<std::size_t> reference, std::size_t i) const {
  if (reference && i == *reference)
    return {{"value", 1.0},
            {"low", 1.0},
            {"high", 1.0},
            {"verdict", "reference"},
            {"same_within_percent", nullptr},
            {"smallest_visible_percent", nullptr},
            {"resolve", nullptr}};
  if (!reference) return {};
  const auto comparison = compare(*reference, i);
  const auto verdict = stats::judge(comparison, minimum_);
  Json out = interval(comparison.ratio());
  out["verdict"] = std::string(stats::to_string(verdict.direction));
  out["same_within_percent"] = finite(verdict.same_within * 100);
  out["smallest_visible_percent"] =
      finite(stats::smallest_visible(comparison.restarts(), comparison.within_se, sigma_, minimum_) * 100);
  out["resolve"] = verdict.direction == stats::Direction::not_resolved ? resolve(comparison) : Json();
  return out;
}

Json CaseView::break_even(std::optional<std::size_t> reference, std::size_t i) const {
  if (!reference || i == *reference) return {};
  const auto own = start_range(*measured_[i]), theirs = start_range(*measured_[*reference]);
  return after_cost(*reference, i, {own.value - theirs.value, own.low - theirs.high, own.high - theirs.low});
}

// What the very first start took longer than one from caches: preparing and compiling. Seen once, so that its range is
// that of the starts from caches.
std::optional<stats::Interval> CaseView::built_ms(const store::Row& row) const {
  const auto first = row.info.value("first_ever", Json());
  const auto again = start_range(row);
  if (!first.is_object() || !first.value("first_ever_ms", Json()).is_number()) return std::nullopt;
  const double ever = first["first_ever_ms"].get<double>();
  return stats::Interval{std::max(0.0, ever - again.value), std::max(0.0, ever - again.high),
                         std::max(0.0, ever - again.low)};
}

Json CaseView::break_even_once(std::optional<std::size_t> reference, std::size_t i) const {
  if (!reference || i == *reference) return {};
  const auto own = built_ms(*measured_[i]), theirs = built_ms(*measured_[*reference]);
  if (!own || !theirs) return {};
  return after_cost(*reference, i, {own->value - theirs->value, own->low - theirs->high, own->high - theirs->low});
}

// Iterations that pay for what level `i` costs more than the reference.
Json CaseView::after_cost(std::size_t reference, std::size_t i, const stats::Interval& extra_ms) const {
  const auto comparison = compare(reference, i);
  const auto difference = stats::difference_ms(joint_[reference], joint_[i], comparison);
  const auto found = stats::break_even(extra_ms, difference, stats::judge(comparison, minimum_).direction);
  return {{"iterations", finite(found.iterations.value)},
          {"low", finite(found.iterations.low)},
          {"high", finite(found.iterations.high)},
          {"never", found.never}};
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
  for (const auto* other : measured_)
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

stats::Comparison CaseView::aa(const store::Row& row) const {
  const auto first = measure::medians({&row}, threads_, 0), second = measure::medians({&row}, threads_, 1);
  stats::Blocks both(first.size());
  for (std::size_t r = 0; r < first.size(); ++r)
    for (std::size_t k = 0; k < first[r].size(); ++k) both[r].push_back({first[r][k][0], second[r][k][0]});
  return stats::compare(stats::log_differences(both, 0, 1), sigma_);
}

Json CaseView::aa_total() const {
  if (!run_.settings.value("aa", false)) return {};
  int comparisons = 0, alarms = 0;
  for (const auto* row : measured_) {
    const auto direction = stats::judge(aa(*row), minimum_).direction;
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
  const double estimate = joint_[i], ratio_of_medians = stats::median(latency) / stats::median(wall);
  out["end_to_end_ms"] = summary(wall, estimate);
  out["latency_ms"] = summary(latency, estimate * ratio_of_medians);
  out["throughput_per_s"] = finite(case_.canonical.value("batch", 1) * 1000.0 / estimate);
  if (case_.canonical.value("mode", "infer") == "train") {
    out["steps_per_s"] = finite(1000.0 / estimate);
    out["phases"] = row.info.value("phases", Json());
  }
  out["cpu_ms"] = has_cpu && iterations > 0 ? finite(cpu_ns / iterations * 1e-6) : Json();
  out["ratio"] = ratio(reference_, i);
  out["break_even"] = break_even(reference_, i);
  out["break_even_once"] = break_even_once(reference_, i);
  if (is_tuned(i))
    out["tuned"] = {{"ratio", ratio(tuned_reference_, i)},
                    {"break_even", break_even(tuned_reference_, i)},
                    {"break_even_once", break_even_once(tuned_reference_, i)}};
  const auto bars = stats::histogram(wall);
  out["histogram"] = {{"edges_ms", bars.edges}, {"counts", bars.counts}};
  const auto why = measure::disturbances(row, threads_);
  for (const auto& reason : why) disturbed_ += !reason.empty();
  total_ += static_cast<int>(why.size());
  out["blocks"] = blocks_json(row, why);
  if (run_.settings.value("aa", false)) {
    const auto comparison = aa(row);
    out["aa"] = {{"ratio", interval(comparison.ratio())},
                 {"verdict", std::string(stats::to_string(stats::judge(comparison, minimum_).direction))}};
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
           {"dynamic", dynamic_view(row, threads_, sigma_, minimum_)}};
  for (const char* numbers : {"end_to_end_ms", "latency_ms", "throughput_per_s", "steps_per_s", "phases", "cpu_ms",
                              "ratio", "break_even", "break_even_once", "histogram", "aa"})
    out[numbers] = nullptr;
  out["blocks"] = Json::array();
  if (row.state == "measured")
    if (const auto i = index_of(row.name())) add_samples(out, row, *i);
  return out;
}

// An edge is a step only where what it does not change is the same on both sides; otherwise it says what differs.
Json CaseView::ledger() const {
  Json edges = Json::array();
  for (const auto* row : measured_) {
    if (row->info.value("harness", false) || row->variant != "default") continue;
    const bool peer = row->info.value("peer", false);
    const std::string from = peer ? case_.reference_level : row->info.value("from", "");
    if (from.empty() || from == row->name()) continue;
    const auto a = index_of(from), b = index_of(row->name());
    if (!a || !b) continue;
    const auto comparison = compare(*a, *b);
    const auto differs =
        peer ? std::vector<std::string>{} : setting_differences(measured_[*a]->settings, row->settings);
    const char* kind = peer ? "peer" : differs.empty() ? "step" : "differs";
    edges.push_back({{"from", from},
                     {"to", row->level},
                     {"kind", kind},
                     {"changes", peer ? "" : row->info.value("changes", "")},
                     {"difference_ms", interval(stats::difference_ms(joint_[*a], joint_[*b], comparison))},
                     {"ratio", interval(comparison.ratio())},
                     {"verdict", std::string(stats::to_string(stats::judge(comparison, minimum_).direction))},
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
  for (std::size_t i = 0; i < measured_.size(); ++i) {
    if (!reference_ || i == *reference_ || measured_[i]->info.value("harness", false)) continue;
    const auto comparison = compare(*reference_, i);
    restarts = std::max(restarts, comparison.restarts());
    visible = std::max(visible, stats::smallest_visible(comparison.restarts(), comparison.within_se, sigma_, minimum_));
  }
  return {{"restarts", restarts ? restarts : case_.trust.value("restarts", 0)},
          {"process_effect_percent", sigma_ * 100},
          {"process_effect_source", case_.trust.value("process_sigma_source", "assumed")},
          {"smallest_visible_percent", visible > 0 ? finite(visible * 100) : Json()},
          {"blocks", total_},
          {"disturbed_blocks", disturbed_},
          {"minimum_effect_percent", minimum_ * 100},
          {"together", together_}};
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
  out["headline"] = tuned_.empty() ? headline(out) : tuned_headline(out);
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
