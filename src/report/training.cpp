// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <variant>

#include "analysis/learning.hpp"
#include "analysis/reliability.hpp"
#include "report/access.hpp"
#include "report/format.hpp"
#include "report/run_documents.hpp"
#include "report/run_facts.hpp"
#include "report/shards.hpp"
#include "report/trained_level.hpp"
#include "report/training_sections.hpp"

namespace strata::report {
namespace {

using analysis::Spread;
using document::Absent;
using document::Cell;
using document::Number;
using document::NumberFormat;

using Level = TrainedLevel;

std::optional<Spread> scaled(std::optional<Spread> spread, double factor) {
  if (spread)
    *spread = {.mean = spread->mean * factor,
               .low = spread->low * factor,
               .high = spread->high * factor,
               .count = spread->count};
  return spread;
}

// Of a level over the reference, by its steps or by processor time.
Cell speedup_cell(const Level& level, const Level* reference, const std::string& by = "step_time") {
  if (!reference) return Absent{};
  return spread_cell(analysis::speedup(level.learning, reference->learning, by), NumberFormat::ratio);
}

document::Table result_table(const std::vector<Level>& levels, const store::Case& run_case, bool reliable) {
  document::Table table{.id = "result", .title = "Result"};
  table.columns = {{.id = "level", .title = "level", .align = document::Align::left},
                   {.id = "epochs", .title = "epochs"},
                   {.id = "test_accuracy", .title = "best accuracy"},
                   {.id = "at_epoch", .title = "at epoch"},
                   {.id = "last_accuracy", .title = "last accuracy"},
                   {.id = "test_loss", .title = "last test loss"},
                   {.id = "step_time", .title = "step"},
                   {.id = "speedup", .title = "speedup"},
                   {.id = "samples_per_s", .title = "images", .unit = "1/s"},
                   {.id = "epoch_seconds", .title = "epoch"},
                   {.id = "cpu_utilisation", .title = "processors used"},
                   {.id = "peak_memory", .title = "peak memory"}};
  const Level* reference = reference_of(levels, run_case);
  for (const auto& level : levels) {
    const auto& row = *level.row;
    const std::string why = level.measured() ? "" : to_string(level.state);
    const auto best = level.learning.best("test_accuracy");
    const auto& learning = level.learning;
    const bool told = reliable || !level.measured();
    const auto peak = why.empty() && row.memory ? row.memory->peak_private_bytes : std::nullopt;
    table.rows.push_back(
        {row.name(),
         document::number_cell(why.empty() ? std::optional<double>(learning.epochs()) : std::nullopt,
                               NumberFormat::count),
         spread_cell(best ? std::optional(best->value) : std::nullopt, NumberFormat::percent, why),
         spread_cell(best ? std::optional(best->epoch) : std::nullopt, NumberFormat::digits),
         spread_cell(learning.last("test_accuracy"), NumberFormat::percent),
         spread_cell(learning.last("test_loss"), NumberFormat::digits),
         spread_cell(scaled(learning.mean_of_all("step_time"), 1e-3), NumberFormat::seconds),
         told || &level == reference ? speedup_cell(level, reference) : Cell{Absent{analysis::kNotReliable}},
         spread_cell(learning.mean_of_all("samples_per_s"), NumberFormat::count),
         spread_cell(learning.mean_of_all("epoch_seconds"), NumberFormat::seconds),
         spread_cell(learning.mean_of_all("cpu_utilisation"), NumberFormat::percent),
         document::number_cell(peak, NumberFormat::bytes)});
    if (!reliable) table.rows.back().push_back(speedup_cell(level, reference, analysis::by_processor_time));
  }
  if (!reliable) table.columns.push_back({.id = "processor_speedup", .title = "speedup by processor time"});
  table.note = fmt::format(
      "Means over repeats, with the least and the most of them. Speedup: the ratio of mean steps of one repeat, whose "
      "levels took turns, over {}. An epoch is its steps and what they waited for images; scoring is not in it. "
      "Processors used: processor time over time, of the threads asked for; a thread that spins while it waits counts. "
      "Memory is that of a level alone.",
      run_case.reference_level);
  if (!reliable) table.note += " Times are not reliable: other programs had the processors.";
  return table;
}

document::Line curve(const Level& level, const std::string& name, bool against_time) {
  document::Line line;
  line.name = line.group = level.row->name();
  for (int epoch = 1; epoch <= level.learning.epochs(); ++epoch) {
    const auto value = level.learning.at(name, epoch);
    const auto seconds = level.learning.seconds_until(epoch);
    if (!value || (against_time && !seconds)) continue;
    line.x.push_back(against_time ? *seconds : epoch);
    line.y.push_back(value->mean);
    line.low.push_back(value->low);
    line.high.push_back(value->high);
  }
  return line;
}

document::Panel panel(const std::vector<Level>& levels, const std::string& title, const std::string& name,
                      const document::Axis& y, bool against_time) {
  document::Panel out{
      .title = title,
      .x = against_time ? document::Axis{.title = "training time", .unit = "s"} : document::Axis{.title = "epoch"},
      .y = y};
  if (against_time) out.x.format = NumberFormat::seconds;
  for (const auto& level : levels)
    if (auto line = curve(level, name, against_time); !line.x.empty()) out.lines.push_back(std::move(line));
  return out;
}

document::Section curves(const std::vector<Level>& levels) {
  const document::Axis accuracy{.title = "accuracy", .logarithmic = false, .format = NumberFormat::percent},
      loss{.title = "loss"};
  document::Section section{.id = "curves", .title = "How they learn"};
  const auto add = [&](const char* id, const char* title, bool against_time) {
    document::Figure figure{.id = id, .title = title, .note = "Lines are means over repeats, bands their range."};
    figure.panels = {panel(levels, "test accuracy", "test_accuracy", accuracy, against_time),
                     panel(levels, "test loss", "test_loss", loss, against_time)};
    if (!against_time) {
      figure.panels.push_back(panel(levels, "accuracy on training images", "train_accuracy", accuracy, false));
      figure.panels.push_back(panel(levels, "loss of the steps", "train_loss", loss, false));
    }
    section.items.push_back(std::move(figure));
  };
  add("by_epoch", "Against epochs", false);
  add("by_time", "Against time", true);
  return section;
}

// What an epoch's turns took beside time. A meter that the machine lacks is a sentence, never a zero.
document::Table meters(const std::vector<Level>& levels) {
  document::Table table{.id = "meters",
                        .title = "What an epoch takes",
                        .columns = {{.id = "level", .title = "level", .align = document::Align::left}}};
  struct Meter {
    const char *name, *title, *unit = "";
    NumberFormat format;
  };
  const Meter all[] = {
      {.name = "cpu_seconds", .title = "processor time", .format = NumberFormat::seconds},
      {.name = "run_queue_wait_seconds", .title = "waiting for a processor", .format = NumberFormat::seconds},
      {.name = "minor_faults", .title = "page faults", .format = NumberFormat::count},
      {.name = "major_faults", .title = "of them from disk", .format = NumberFormat::count},
      {.name = "switched_out", .title = "times switched out", .format = NumberFormat::count},
      {.name = "peak_resident_bytes", .title = "peak resident memory", .format = NumberFormat::bytes},
      {.name = "energy_joules", .title = "energy", .unit = "J", .format = NumberFormat::digits}};
  std::vector<std::string> missing;
  for (const auto& level : levels)
    if (level.measured()) table.rows.push_back({level.row->name()});
  for (const auto& meter : all) {
    if (std::none_of(levels.begin(), levels.end(),
                     [&](const Level& level) { return level.learning.mean_of_all(meter.name); })) {
      missing.emplace_back(meter.title);
      continue;
    }
    table.columns.push_back({.id = meter.name, .title = meter.title, .unit = meter.unit});
    auto row = table.rows.begin();
    for (const auto& level : levels)
      if (level.measured()) (row++)->push_back(spread_cell(level.learning.mean_of_all(meter.name), meter.format));
  }
  table.note =
      "Of the steps alone, all threads and processes of the level, what gathers its images included. Resident memory "
      "counts libraries and the mapped data set; energy is that of the whole processor while the level had its turn.";
  if (!missing.empty()) table.note += fmt::format(" Not shown by this machine: {}.", fmt::join(missing, ", "));
  return table;
}

std::optional<double> phase_ms(const store::Row& row, const char* phase) {
  const auto& phases = row.info.phases;
  return phases && phases->ms.contains(phase) ? phases->ms.at(phase) : std::nullopt;
}

document::Section phases(const std::vector<Level>& levels) {
  document::Table table{.id = "phases",
                        .title = "Where an epoch's time goes",
                        .columns = {{.id = "level", .title = "level", .align = document::Align::left}}};
  const std::vector<std::pair<const char*, const char*>> per_epoch{{"input_wait_seconds", "waiting for images"},
                                                                   {"input_seconds", "gathering images"},
                                                                   {"step_seconds", "steps"},
                                                                   {"score_seconds", "scoring"}};
  for (const auto& [name, title] : per_epoch) table.columns.push_back({.id = name, .title = title});
  const std::vector<const char*> steps{"to_device", "forward", "loss", "backward", "update"};
  for (const char* phase : steps) table.columns.push_back({.id = phase, .title = fmt::format("a step's {}", phase)});
  for (const auto& level : levels) {
    if (!level.measured()) continue;
    std::vector<Cell> row{level.row->name()};
    for (const auto& [name, title] : per_epoch)
      row.push_back(spread_cell(level.learning.mean_of_all(name), NumberFormat::seconds));
    for (const char* phase : steps) {
      const auto ms = phase_ms(*level.row, phase);
      row.push_back(document::number_cell(ms ? std::optional(*ms * 1e-3) : std::nullopt, NumberFormat::seconds));
    }
    table.rows.push_back(std::move(row));
  }
  table.note =
      "Images are gathered by a thread of strata while the level works on the batch before. A step's phases are timed "
      "after the training, on a batch of the proof; a phase that a level cannot tell apart is empty.";
  return {.id = "phases", .title = "Time", .items = {table, meters(levels)}};
}

document::Section proof(const std::vector<Level>& levels) {
  document::Table table{.id = "proof",
                        .title = "Equal work",
                        .columns = {{.id = "level", .title = "level", .align = document::Align::left},
                                    {.id = "state", .title = "state", .align = document::Align::left},
                                    {.id = "before", .title = "before the first epoch", .align = document::Align::left},
                                    {.id = "in_the_middle", .title = "windows and scores in the middle"},
                                    {.id = "in_windows", .title = "steps that could have been judged"},
                                    {.id = "reason", .title = "why", .align = document::Align::left}}};
  for (const auto& level : levels) {
    const auto proof = level.row->proof.value_or(store::Proof());
    const auto& middle = proof.in_the_middle;
    const auto share =
        middle && middle->steps > 0
            ? std::optional(static_cast<double>(middle->steps_in_windows) / static_cast<double>(middle->steps))
            : std::nullopt;
    table.rows.push_back({level.row->name(), to_string(level.state), proof.verdict,
                          document::number_cell(middle ? std::optional<double>(middle->steps_and_scores) : std::nullopt,
                                                NumberFormat::count),
                          document::number_cell(share, NumberFormat::percent), level.reason});
  }
  table.note =
      "Before the first epoch a step of every level is proven against float64. In windows of a few steps that are "
      "drawn, in the last one, and for scores of drawn epochs and the best, eager repeats what the level did from the "
      "level's own state on the same images. Which of the windows are judged no level can know; what lies outside of "
      "them is not judged.";
  return {.id = "proof", .title = "Proof", .items = {table}};
}

// When each level found so many of the test images.
document::Table time_to_accuracy(const std::vector<Level>& levels, double target) {
  document::Table table{.id = "time_to_accuracy", .title = fmt::format("Time to {:g}% of test images", 100 * target)};
  table.columns = {{.id = "level", .title = "level", .align = document::Align::left},
                   {.id = "epoch", .title = "epoch"},
                   {.id = "seconds", .title = "training time"},
                   {.id = "never", .title = "repeats that never did"}};
  for (const auto& level : levels) {
    if (!level.measured()) continue;
    const auto reached = level.learning.reached("test_accuracy", target);
    table.rows.push_back({level.row->name(), spread_cell(reached.epoch, NumberFormat::digits),
                          spread_cell(reached.seconds, NumberFormat::seconds),
                          Number{.value = static_cast<double>(reached.never), .format = NumberFormat::count}});
  }
  table.note =
      "Of the repeats that did, to the end of the epoch in which they did; steps and waiting for images, no scoring.";
  return table;
}

// The reference, and the levels beside it that were measured.
std::optional<std::pair<Learner, std::vector<Learner>>> learners_of(const std::vector<Level>& levels,
                                                                    const store::Case& run_case) {
  const Level* reference = reference_of(levels, run_case);
  if (!reference || !reference->measured()) return std::nullopt;
  std::vector<Learner> others;
  for (const auto& level : levels)
    if (&level != reference && level.measured()) others.push_back({level.row->name(), &level.learning});
  return std::pair(Learner{reference->row->name(), &reference->learning}, std::move(others));
}

// Whether a repeat came to its end: what levels learned in fewer epochs than were asked for decides nothing.
bool is_judged(const std::vector<Level>& levels, const store::Case& run_case) {
  return run_case.finished || epochs_done(levels) >= run_case.question.recipe->training->epochs;
}

Margins margins_of(const store::Run& run) {
  const auto& training = run.settings.training;
  return {training.margin.value_or(Margins().accuracy), training.loss_margin.value_or(Margins().loss)};
}

document::Section result_section(const std::vector<Level>& levels, const store::Case& run_case, const store::Run& run) {
  document::Section result{
      .id = "result", .title = "Result", .items = {result_table(levels, run_case, is_reliable(levels, run_case, run))}};
  for (const auto& level : levels)
    if (const int diverged = level.learning.diverged(); diverged > 0)
      result.items.push_back(
          document::Text{fmt::format("{}: the loss was not finite in {} of {} repeats, which ended there",
                                     level.row->name(), diverged, level.learning.repeats().size()),
                         document::Text::Kind::warning});
  for (const auto& warning : run.warnings)
    if (warning.case_key.empty() || warning.case_key == run_case.key)
      result.items.push_back(document::Text{fmt::format("{}: {}. {}", warning.id, warning.what, warning.advice),
                                            document::Text::Kind::warning});
  if (const auto target = run.settings.training.target) result.items.push_back(time_to_accuracy(levels, *target));
  return result;
}

std::vector<document::Section> sections_of(const std::vector<Level>& levels, const store::Case& run_case,
                                           const store::Run& run) {
  std::vector<document::Section> sections{result_section(levels, run_case, run)};
  const bool ended = is_judged(levels, run_case);
  if (const auto compared = learners_of(levels, run_case); compared && ended)
    if (auto section = verdicts(compared->first, compared->second, margins_of(run),
                                static_cast<double>(run_case.trust.test_images.value_or(0)));
        !section.items.empty())
      sections.push_back(std::move(section));
  if (const auto target = run.settings.training.target; target && run.settings.training.rule == "mlperf")
    if (const auto compared = learners_of(levels, run_case); compared && ended)
      sections.push_back(mlperf_rule(compared->first, compared->second, *target));
  for (auto& section : {curves(levels), phases(levels)}) sections.push_back(section);
  if (auto cycle = life_cycle(levels, run_case, is_reliable(levels, run_case, run)); !cycle.items.empty())
    sections.push_back(std::move(cycle));
  if (auto layers = layers_section(levels, *run_case.question.recipe)) sections.push_back(std::move(*layers));
  sections.push_back(proof(levels));
  return sections;
}

std::string summary_of(const SchemeTraining& training, const store::Run& run) {
  const auto& request = *training.run_case;
  auto text = training_summary(training.levels, request, run);
  if (const auto compared = learners_of(training.levels, request); compared && is_judged(training.levels, request))
    text += verdict_words(compared->first, compared->second, margins_of(run),
                          static_cast<double>(request.trust.test_images.value_or(0))) +
            chance_words(training.levels, request);
  return text;
}

// Of one of several trainings, whose ids and titles differ by its scheme.
document::Section of_scheme(document::Section section, std::size_t place, const std::string& scheme) {
  const auto prefix = fmt::format("init{}_", place + 1);
  section.id = prefix + section.id;
  section.title = fmt::format("{}: {}", scheme, section.title);
  for (auto& item : section.items)
    std::visit(
        [&](auto& element) {
          if constexpr (requires { element.id; }) element.id = prefix + element.id;
        },
        item);
  return section;
}

void add_trainings(document::Document& out, const std::vector<SchemeTraining>& trainings, const store::Run& run) {
  const auto& first = *trainings.front().run_case;
  const auto& recipe = *first.question.recipe;
  out.title = "strata train: " + first.question.model + " on " + first.question.data;
  if (trainings.size() == 1) {
    out.subtitle = first.id;
    out.summary = summary_of(trainings.front(), run);
    out.sections = sections_of(trainings.front().levels, first, run);
  } else {
    auto question = first.question;
    question.recipe->training->init = core::Training().init;
    out.subtitle = fmt::format("{}, {} initialisations", question.id(), trainings.size());
    out.summary = initialisation_words(trainings);
    out.sections = {initialisations(trainings)};
    for (std::size_t i = 0; i < trainings.size(); ++i)
      for (auto& section : sections_of(trainings[i].levels, *trainings[i].run_case, run))
        out.sections.push_back(of_scheme(std::move(section), i, trainings[i].scheme()));
  }
  out.facts = {{"data", first.trust.data}, {"optimiser", words(recipe.optimiser)}};
  if (out.facts.back().value.empty()) out.facts.back().value = "sgd";
}

}  // namespace

bool is_training(const store::Run& run) {
  return run.settings.verb == "train";
}

Result<document::Document> training_document(const store::Run& run, const store::Store& store) {
  document::Document out;
  out.title = "strata train";
  std::vector<SchemeTraining> trainings;
  for (const auto& run_case : run.cases) {
    auto levels = STRATA_TRY(trained_levels(run_case, store));
    trainings.push_back({&run_case, std::move(levels)});
  }
  if (!trainings.empty()) add_trainings(out, trainings, run);
  if (const auto& scaled = run.settings.training.scaled; !scaled.empty()) {
    out.summary = "S" + scaled.substr(1) + ". " + out.summary;  // what is a part of a training says so first
    out.facts.push_back({"scale", scaled});
  }
  const auto cut = std::find_if(trainings.begin(), trainings.end(),
                                [](const SchemeTraining& training) { return !training.run_case->finished; });
  if (cut != trainings.end()) out.summary = cut_off_words(cut->levels, *cut->run_case, run) + out.summary;
  out.summary = resumed_words(run) + out.summary;
  if (auto shards = shards_section(run)) out.sections.push_back(std::move(*shards));
  for (auto& fact : run_facts(run)) out.facts.push_back(std::move(fact));
  out.marks = run_marks(run);
  return out;
}

}  // namespace strata::report
