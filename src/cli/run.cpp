// SPDX-License-Identifier: Apache-2.0
// `strata run SUITE`: what a suite says, planned, run entry by entry, and shown.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>

#include "cli/console.hpp"
#include "cli/option.hpp"
#include "cli/run_verbs.hpp"
#include "cli/verbs.hpp"
#include "common/interrupt.hpp"
#include "engine/suite_run.hpp"
#include "probe/machine.hpp"
#include "report/format.hpp"
#include "report/run_documents.hpp"
#include "requests/codec.hpp"
#include "requests/members.hpp"

namespace strata::cli {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

struct SuiteArguments : requests::SuiteRequest {
  std::string command, store, format = "text";
  bool dry_run = false, yes = false, resume = false;
  std::optional<store::Run> resumed;
};

constexpr double kLongS = 3600, kTooLongS = 86400;  // said, and asked for

struct Total {
  double seconds = 0, bytes = 0;
  std::size_t unknown = 0;
};

Total total_of(const std::vector<engine::PlannedEntry>& entries, const engine::SuiteRun& suite_run) {
  Total total;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (suite_run.is_done(i) || entries[i].unavailable) continue;
    total.seconds += entries[i].predicted_s.value_or(0);
    total.bytes += entries[i].bytes.value_or(0);
    total.unknown += !entries[i].predicted_s;
  }
  return total;
}

Json json_of(const suite::Suite& suite, const std::vector<engine::PlannedEntry>& entries, const Total& total) {
  Json all = Json::array();
  for (const auto& entry : entries)
    all.push_back({{"command", entry.entry.command},
                   {"line", entry.entry.line},
                   {"levels", entry.levels},
                   {"amount", entry.amount},
                   {"from", entry.basis},
                   {"predicted_s", entry.predicted_s ? Json(*entry.predicted_s) : Json()},
                   {"disk_bytes", entry.bytes ? Json(*entry.bytes) : Json()},
                   {"unavailable", entry.unavailable ? Json(entry.unavailable->what) : Json()}});
  return {{"title", suite.title},
          {"hash", suite.hash},
          {"entries", all},
          {"predicted_s", total.unknown == 0 ? Json(total.seconds) : Json()}};
}

std::string in_words(const Total& total) {
  const auto unknown = fmt::format("{} entr{} of unknown length", total.unknown, total.unknown == 1 ? "y" : "ies");
  if (total.unknown == 0) return report::about(total.seconds);
  return total.seconds > 0 ? fmt::format("{}, and {}", report::about(total.seconds), unknown) : unknown;
}

void print_suite_plan(const suite::Suite& suite, const std::vector<engine::PlannedEntry>& entries, const Total& total,
                      report::Format format) {
  if (format == report::Format::json) return answer_json(json_of(suite, entries, total), 1);
  std::vector<report::Cells> rows;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto& planned = entries[i];
    rows.push_back({std::to_string(i + 1), planned.amount, planned.levels,
                    planned.predicted_s ? fmt::format("{:.1f}", *planned.predicted_s / 60) : "?",
                    planned.bytes ? report::size(*planned.bytes) : "?", planned.entry.command});
  }
  answer(report::table({report::numbers("entry"), "repeats x epochs x steps", "levels", report::numbers("minutes"),
                        report::numbers("disk"), "command"},
                       rows, format));
  if (format != report::Format::text) return;
  answer(fmt::format("\n{}\n", suite.title));
  if (!suite.about.empty()) answer(suite.about + "\n");
  answer(fmt::format("{} entr{}: {}\n", entries.size(), entries.size() == 1 ? "y" : "ies", in_words(total)));
  for (std::size_t i = 0; i < entries.size(); ++i)
    answer(fmt::format("entry {}: {}\n", i + 1,
                       entries[i].unavailable ? "unavailable: " + entries[i].unavailable->what : entries[i].basis));
}

Result<void> agree_to(const Total& total, const SuiteArguments& a) {
  if (total.seconds < kLongS) return {};
  const auto offers = total.seconds >= kTooLongS
                          ? fmt::format("--scale {:.1g} brings it to about an hour", kLongS / total.seconds)
                          : std::string("--scale 0.1 does a tenth of it");
  if (total.seconds >= kTooLongS && !a.yes && !a.resumed)
    return fail(fmt::format("this suite takes {}, more than a day", in_words(total)),
                offers + "; --yes begins it as it is, and --dry-run shows it entry by entry", Exit::usage);
  tell(fmt::format("this takes {}; {}\n", in_words(total), offers));
  return {};
}

Result<void> show_suite(const SuiteArguments& a, const fs::path& path, const std::string& id) {
  const auto store = STRATA_TRY(store::Store::open_existing(path));
  const auto run = STRATA_TRY(store.load_id(id));
  const auto document = STRATA_TRY(report::suite_document(run, store));
  STRATA_TRY(print_document(document, a.format));
  write_stored_page(document, installation(), store.path(), id);
  return {};
}

// The run that goes on, if one is to.
Result<void> find_resumed(SuiteArguments& a, const engine::ReadSuite& ready) {
  const auto& suite = ready.suite;
  if (a.resumed && a.resumed->settings.suite_run.hash != suite.hash)
    return fail(fmt::format("{} is not as it was when run {} began", suite.path.string(), a.resumed->run_id),
                "start a new run of it", Exit::usage);
  if (a.resumed || !a.resume) return {};
  auto earlier = STRATA_TRY(engine::SuiteRun::unfinished(ready.store, suite.hash, a.scale, ready.entries));
  if (!earlier)
    tell("no earlier run of this suite, as it is, with this scale and these entries, is stored: a new one begins\n");
  a.resumed = std::move(earlier);
  return {};
}

// Shown as if its command had been typed, where the suite is shown as text.
Result<int> run_entry(const requests::Request& request, engine::RunContext context, const SuiteArguments& a) {
  RunArguments run;
  static_cast<engine::RunContext&>(run) = std::move(context);
  run.store = a.store;
  run.quiet = a.format != "text";
  const auto code = run_request(request, run);
  if (!code && !interrupted()) print_error(code.error());
  return code;
}

Result<int> run_suite(SuiteArguments& a) {
  const auto ready = STRATA_TRY(engine::read_suite(a, a.store));
  const auto& [suite, entries, store] = ready;
  STRATA_TRY(find_resumed(a, ready));
  engine::SuiteRun suite_run(a.resumed ? *a.resumed : engine::describe_suite(suite, entries, a, a.command, a.format),
                             store);
  ProgressLine line;
  const auto planned = STRATA_TRY(engine::plan_entries(suite, entries, store, line));
  if (interrupted()) return interrupt_exit_code();
  const auto total = total_of(planned, suite_run);
  if (a.dry_run) {
    print_suite_plan(suite, planned, total, report::format_from(a.format).value_or(report::Format::text));
    return 0;
  }
  STRATA_TRY(agree_to(total, a));
  STRATA_TRY(suite_run.run(planned, a.resumed.has_value(), line, [&](const auto& request, engine::RunContext context) {
    line.clear();
    return run_entry(request, std::move(context), a);
  }));
  const int shown_code = code_of(show_suite(a, store, suite_run.id()));
  if (interrupted()) tell(fmt::format("interrupted: ./strata resume {} continues\n", suite_run.id()));
  return shown_code != 0 && !interrupted() ? shown_code : suite_run.exit_code();
}

}  // namespace

Result<int> resume_suite(store::Run run, const ResumedWith& with) {
  SuiteArguments a;
  static_cast<requests::SuiteRequest&>(a) = STRATA_TRY(requests::read_suite_request(run.settings.request));
  if (a.python != with.python)  // which set-up has to know before this program starts
    return fail(fmt::format("run {} began with {}", run.run_id, a.python.empty() ? "strata's own Python" : a.python),
                a.python.empty() ? "leave --python out" : "add --python " + a.python, Exit::usage);
  a.store = with.store;
  a.format = with.format.empty() ? run.settings.kept.format : with.format;
  a.resumed = std::move(run);
  return run_suite(a);
}

void add_run(CLI::App& app, const std::vector<std::string>& words, int& exit_code) {
  auto* verb = app.add_subcommand("run", "run a suite: a text file that describes what to train and compare");
  auto a = std::make_shared<SuiteArguments>();
  a->command = requests::command_of(words);
  add_members(*verb, requests::members_of(*a));
  verb->add_flag("--dry-run", a->dry_run,
                 "print the plan: entries, levels, how long each takes, what it needs on disk");
  verb->add_flag("--yes", a->yes, "start even if it takes more than a day");
  verb->add_flag("--resume", a->resume,
                 "continue the newest run of this suite, as it is now: entries that are done are not repeated");
  add_store(*verb, a->store);
  format_choice(
      verb->add_option("--format", a->format, "of the summary on standard output; text also shows each entry"));
  verb->footer(
      "Exit codes: 0 every entry that this machine can run is done; 1 an entry failed, the others were run all the "
      "same; 2 wrong usage, or more than a day without --yes: nothing was run; 3 an entry lacks what it requires, or "
      "none can run here; 130, 143, 129 ended by Ctrl-C, SIGTERM or SIGHUP (./strata resume RUN continues); 141 the "
      "reader of the output went away.");
  set_action(
      *verb, exit_code, [a] { return run_suite(*a); }, [a] { return engine::needs_of(*a, a->store); });
}

}  // namespace strata::cli
