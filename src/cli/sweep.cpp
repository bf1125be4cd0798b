// SPDX-License-Identifier: Apache-2.0
// `strata sweep MODEL --batch ... --size ...`: one network over a grid of cases, corners first, within a budget; who
// may be the fastest where.
#include "cli/sweep.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <set>

#include "cli/document.hpp"
#include "cli/option.hpp"
#include "cli/run_case.hpp"
#include "cli/verbs.hpp"
#include "common/duration.hpp"
#include "common/interrupt.hpp"
#include "measure/machine_facts.hpp"
#include "measure/warnings.hpp"
#include "probe/machine.hpp"
#include "report/sweep.hpp"
#include "stats/sample.hpp"
#include "stats/schedule.hpp"

namespace strata::cli {
namespace fs = std::filesystem;
using Json = nlohmann::json;
using std::chrono::steady_clock;
namespace {

constexpr double kLeastMeasured_s = 3;  // of a point, all its levels together
constexpr double kShareOfMemory = 0.9;  // of what is available, that one level may take
constexpr double kSameLimit = 0.9;      // a level that had this share of today's limit would run out again
constexpr const char* kAxes[] = {"batch", "size", "mode", "maths", "threads"};

double seconds_since(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

// Whether every axis is at one of its ends.
class Corners {
 public:
  explicit Corners(const std::vector<Json>& specs) {
    for (const auto& spec : specs)
      for (const char* axis : kAxes) values_[axis].insert(spec.value(axis, Json()));
  }
  bool has(const Json& spec) const {
    return std::all_of(values_.begin(), values_.end(), [&](const auto& axis) {
      const auto own = spec.value(axis.first, Json());
      return own == *axis.second.begin() || own == *axis.second.rbegin();
    });
  }

 private:
  std::map<std::string, std::set<Json>> values_;
};

// A value of an axis: 8, infer, 64 of a square image, 64x96.
std::string shown(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array() || value.size() != 2) return value.dump();
  return value[0] == value[1] ? value[0].dump() : fmt::format("{}x{}", value[0].dump(), value[1].dump());
}

// Corners first, so that a budget that ends early has seen the ends; the rest in an order drawn from the seed.
void arrange_points(Prepared& ready, bool limited) {
  auto& specs = ready.specs;
  stats::Random random(ready.setting.order_seed);
  random.shuffle(specs);
  const Corners corners(specs);
  std::stable_partition(specs.begin(), specs.end(), [&](const Json& spec) { return corners.has(spec); });
  // The machine never swaps: what one level alone may take is what there is.
  auto& limit = ready.setting.options.memory_limit_gib;
  if (!limit && limited && ready.setting.options.device == "cpu")
    limit = kShareOfMemory * static_cast<double>(probe::memory().available_bytes) / (1024.0 * 1024.0 * 1024.0);
}

class Sweep {
 public:
  Sweep(const CompareArguments& a, Prepared& ready, measure::MachineFacts& facts, store::Store& store,
        StoredRun& stored, ProgressLine& line)
      : a_(a), ready_(ready), facts_(facts), store_(store), stored_(stored), line_(line) {}

  Result<measure::Outcome> run();

 private:
  Result<void> remember();
  bool give_time(std::size_t done);
  Result<void> note_missing(const Json& spec, const Error& error);

  const CompareArguments& a_;
  Prepared& ready_;
  measure::MachineFacts& facts_;
  store::Store& store_;
  StoredRun& stored_;
  ProgressLine& line_;
  plan::Outgrown outgrown_;
  const steady_clock::time_point start_ = steady_clock::now();
  std::vector<double> beside_s_;  // what points took beside their measured time
};

// What ran out of memory in earlier runs, with no less memory and the same PyTorch.
Result<void> Sweep::remember() {
  if (a_.retry) return {};
  const auto& s = ready_.setting;
  const auto seen = store_.out_of_memory(s.machine);
  if (!seen) return tl::unexpected(seen.error());
  const double limit = s.options.memory_limit_gib.value_or(0);
  for (const auto& one : *seen)
    if (one.torch == s.environment.torch_version &&
        (one.limit_gib == 0 || (limit > 0 && one.limit_gib >= kSameLimit * limit)))
      outgrown_.add(one.level, one.question);
  return {};
}

// The next point's measured time: an equal share of what is left, less what a point takes beside it. False: nothing is
// left; the first point is run all the same.
bool Sweep::give_time(std::size_t done) {
  const auto& total = ready_.setting.options.budget_s;
  auto& measured_s = ready_.setting.effort.budget_s;
  if (!a_.point_time.empty()) measured_s = seconds_of(a_.point_time).value_or(measured_s);
  if (!total) return true;
  const double left = *total - seconds_since(start_);
  if (left <= 0 && done > 0) return false;
  if (!a_.point_time.empty()) return true;
  const double points = static_cast<double>(ready_.specs.size() - done);
  const double beside = beside_s_.empty() ? 0 : stats::median(beside_s_);
  measured_s = std::max(kLeastMeasured_s, left / points - beside);
  return true;
}

Result<void> Sweep::note_missing(const Json& spec, const Error& error) {
  if (auto begun = stored_.begin(); !begun) return begun;
  std::vector<std::string> words;
  for (const char* axis : kAxes)
    if (spec.contains(axis) && !spec[axis].is_null()) words.push_back(fmt::format("{} {}", axis, shown(spec[axis])));
  const auto point = fmt::format("{}", fmt::join(words, ", "));
  line_.callbacks().note(fmt::format("{}: {}", point, error.what));
  return store_.add_warning(ready_.setting.run_id, measure::warnings::missing_point(point, error.what));
}

Result<measure::Outcome> Sweep::run() {
  if (auto done = remember(); !done) return tl::unexpected(done.error());
  measure::Outcome all;
  std::optional<Error> first;
  std::size_t done = 0;
  for (const auto& spec : ready_.specs) {
    if (interrupted()) break;
    if (!give_time(done)) {
      line_.callbacks().note(
          fmt::format("the budget is spent: {} of {} points were reached", done, ready_.specs.size()));
      stored_.cut_short();
      break;
    }
    const auto begun = steady_clock::now();
    line_.callbacks().note(fmt::format("point {} of {}", done + 1, ready_.specs.size()));
    const auto outcome = run_case(ready_, spec, &outgrown_, facts_, store_, stored_, line_);
    ++done;
    if (!outcome) {
      if (interrupted()) break;
      if (auto noted = note_missing(spec, outcome.error()); !noted) return tl::unexpected(noted.error());
      if (!first) first = outcome.error();
      continue;
    }
    all.failed = all.failed || outcome->failed;
    all.missing = all.missing || outcome->missing;
    beside_s_.push_back(std::max(0.0, seconds_since(begun) - ready_.setting.effort.budget_s));
    if (auto remembered = remember(); !remembered) return tl::unexpected(remembered.error());
  }
  if (first && done == 0) return tl::unexpected(*first);
  return all;
}

int show_sweep(const CompareArguments& a, store::Store& store, const measure::Setting& setting) {
  const auto run = store.load_run(setting.run_id);
  if (!run) return complain(run.error());
  const auto document = report::sweep_document(*run);
  for (const auto& one : run->cases)  // a list of runs without it is no reason to end in an error
    (void)store.set_verdict(run->run_id, one.key, document.summary);
  if (const int code = a.quiet ? 0 : print_document(document, a.format); code != 0) return code;
  const auto path = a.output.empty() ? default_report(store.path(), setting.run_id) : fs::path(a.output);
  return write_page(document, setting.place, path);
}

}  // namespace

void add_sweep_options(CLI::App& verb, CompareArguments& a) {
  add_compare_options(verb, a);
  verb.get_option("--budget")
      ->description(
          "time of the whole sweep, as 40m: shared equally by the points that are left, corners first (default: the "
          "preset's measured time for each point)");
  duration(verb.add_option("--point-time", a.point_time,
                           "measured time of every point, as 10s (default: its share of the budget, else the "
                           "preset's)"));
  verb.add_flag("--retry", a.retry, "also run levels at points no smaller than one at which they ran out of memory");
}

Result<int> run_sweep(CompareArguments& a) {
  return run_as(
      a, {.verb = "sweep",
          .arrange = [&a](Prepared& ready) { arrange_points(ready, !a.dry_run); },
          .run_cases = [&a](Prepared& ready, measure::MachineFacts& facts, store::Store& store, StoredRun& stored,
                            ProgressLine& line) { return Sweep(a, ready, facts, store, stored, line).run(); },
          .show = show_sweep});
}

void add_sweep(CLI::App& app, int& exit_code, int argc, char** argv) {
  auto* verb = app.add_subcommand(
      "sweep", "compare over a grid of batches, sizes, threads, precisions: who may be the fastest where");
  auto a = std::make_shared<CompareArguments>();
  a->words.assign(argv + 1, argv + argc);
  add_sweep_options(*verb, *a);
  verb->callback([a, &exit_code] {
    const auto code = run_sweep(*a);
    exit_code = code ? *code : complain(code.error());
  });
}

}  // namespace strata::cli
