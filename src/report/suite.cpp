// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <map>

#include "common/places.hpp"
#include "report/format.hpp"
#include "report/run_documents.hpp"
#include "report/run_facts.hpp"
#include "report/shards.hpp"
#include "report/suite_levels.hpp"

namespace strata::report {
namespace {

document::Cell seconds_cell(const std::optional<double>& seconds) {
  return document::number_cell(seconds, document::NumberFormat::seconds);
}

// What lists of runs say of it; of one without a verdict, why it has none.
Result<std::string> outcome_of(const store::EntryFacts& entry, const store::Store& store) {
  std::vector<std::string> words;
  if (!entry.run.empty()) {
    words = store::verdicts_of(STRATA_TRY(store.run_cases(entry.run)));
  }
  if (!entry.reason.empty()) words.push_back(entry.reason);
  return fmt::format("{}", fmt::join(words, "; "));
}

std::string report_of(const store::EntryFacts& entry, const store::Store& store) {
  const auto page = store.path().parent_path() / "reports" / (entry.run + ".html");
  return !entry.run.empty() && there_is(page) ? page.string() : "";
}

Result<document::Table> entries_table(const std::vector<store::EntryFacts>& entries, const store::Store& store) {
  document::Table table{.id = "entries",
                        .title = "What became of each",
                        .columns = {{.id = "entry", .title = "entry"},
                                    {.id = "what", .title = "what", .align = document::Align::left},
                                    {.id = "state", .title = "state", .align = document::Align::left},
                                    {.id = "predicted", .title = "predicted"},
                                    {.id = "took", .title = "took"},
                                    {.id = "run", .title = "run", .align = document::Align::left},
                                    {.id = "result", .title = "result", .align = document::Align::left}}};
  double place = 0;
  for (const auto& entry : entries) {
    const auto outcome = STRATA_TRY(outcome_of(entry, store));
    table.rows.push_back({document::Number{.value = ++place, .format = document::NumberFormat::count}, entry.label,
                          entry.state.empty() ? "not run yet" : entry.state, seconds_cell(entry.predicted_s),
                          seconds_cell(entry.took_s), entry.run, outcome});
  }
  table.note = "./strata show RUN has the numbers of an entry.";
  return table;
}

document::Table commands_table(const std::vector<store::EntryFacts>& entries, const store::Store& store) {
  document::Table table{.id = "commands",
                        .title = "How to repeat each",
                        .columns = {{.id = "entry", .title = "entry"},
                                    {.id = "command", .title = "command", .align = document::Align::left},
                                    {.id = "report", .title = "report", .align = document::Align::left}}};
  double place = 0;
  for (const auto& entry : entries)
    table.rows.push_back({document::Number{.value = ++place, .format = document::NumberFormat::count}, entry.command,
                          report_of(entry, store)});
  return table;
}

}  // namespace

bool is_suite(const store::Run& run) {
  return run.settings.verb == "run";
}

std::string suite_summary(const store::Run& run) {
  const auto& entries = run.settings.suite_run.entries;
  std::map<std::string, int> states;
  double predicted = 0, took = 0;  // of entries that have both
  for (const auto& entry : entries) {
    ++states[entry.state.empty() ? "not run yet" : entry.state];
    if (entry.predicted_s && entry.took_s && entry.state == "done")
      predicted += *entry.predicted_s, took += *entry.took_s;
  }
  std::vector<std::string> words;
  for (const auto& [state, count] : states) words.push_back(fmt::format("{} {}", count, state));
  auto sentence =
      fmt::format("{} entr{}: {}", entries.size(), entries.size() == 1 ? "y" : "ies", fmt::join(words, ", "));
  if (took > 0)
    sentence +=
        fmt::format("; what is done took {:.1f} min, predicted {:.1f} min ({:.0f}% too {})", took / 60, predicted / 60,
                    std::abs(100 * (predicted / took - 1)), predicted < took ? "short" : "long");
  const auto& scale = run.settings.suite_run.scale;
  return scale.empty() ? sentence + "." : fmt::format("Scaled by --scale {}. {}.", scale, sentence);
}

Result<document::Document> suite_document(const store::Run& run, const store::Store& store) {
  document::Document out;
  const auto& suite = run.settings.suite_run;
  const auto& entries = suite.entries;
  out.title = "strata run: " + suite.title;
  out.subtitle = suite.about;
  out.summary = ending_words(run) + suite_summary(run);
  auto table = STRATA_TRY(entries_table(entries, store));
  out.sections.push_back(
      {.id = "entries", .title = "Entries", .items = {std::move(table), commands_table(entries, store)}});
  auto levels = STRATA_TRY(levels_section(entries, store));
  if (!levels.items.empty()) out.sections.push_back(std::move(levels));
  out.facts = {{"file", suite.file}, {"file's hash", suite.hash.substr(0, 16)}};
  if (!suite.source.empty()) out.facts.push_back({"source", suite.source});
  for (auto& fact : run_facts(run)) out.facts.push_back(std::move(fact));
  out.marks = run_marks(run);
  return out;
}

}  // namespace strata::report
