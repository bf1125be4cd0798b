// SPDX-License-Identifier: Apache-2.0
#include "report/timed_commands.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "report/format.hpp"
#include "stats/sample.hpp"

namespace strata::report {
namespace {

using analysis::RatioVerdict;
using analysis::TimedCommand;
using analysis::TimedCommands;
using document::Number;
using document::NumberFormat;

document::Tone tone_of(RatioVerdict verdict) {
  switch (verdict) {
    case RatioVerdict::faster:
      return document::Tone::good;
    case RatioVerdict::slower:
      return document::Tone::bad;
    case RatioVerdict::inconclusive:
      return document::Tone::faint;
    default:
      return document::Tone::plain;
  }
}

document::Cell seconds_of(const std::vector<double>& ns, double value) {
  if (ns.empty()) return document::Absent{};
  return Number{.value = 1e-9 * value, .format = NumberFormat::seconds};
}

std::vector<document::Cell> row_of(const TimedCommands& timed, std::size_t i) {
  const auto& command = timed.commands[i];
  if (command.state != State::measured)
    return {command.name, document::Word{to_string(command.state), document::Tone::bad}};
  std::vector<document::Cell> row{
      command.name, document::Word{"measured"},
      Number{.value = static_cast<double>(command.wall_ns.size()), .format = NumberFormat::count}};
  const auto& wall = command.wall_ns;
  row.push_back(seconds_of(wall, stats::median(wall)));
  row.push_back(seconds_of(wall, *std::min_element(wall.begin(), wall.end())));
  row.push_back(seconds_of(wall, *std::max_element(wall.begin(), wall.end())));
  const auto speedup = analysis::speedup_of(timed, i);
  if (speedup && speedup->value) {
    Number ratio{.value = *speedup->value, .format = NumberFormat::ratio};
    if (i > 0) ratio.low = speedup->low, ratio.high = speedup->high;
    if (!ratio.low || !ratio.high) ratio.low = ratio.high = std::nullopt;
    row.emplace_back(ratio);
    const auto verdict = speedup->verdict.value_or(RatioVerdict::inconclusive);
    row.emplace_back(document::Word{to_string(verdict), tone_of(verdict)});
  } else {
    row.emplace_back(document::Absent{"the first has no number"});
    row.emplace_back(document::Absent{});
  }
  row.push_back(seconds_of(command.processor_ns, stats::median(command.processor_ns)));
  if (command.peak_bytes > 0)
    row.emplace_back(Number{.value = static_cast<double>(command.peak_bytes), .format = NumberFormat::bytes});
  return row;
}

document::Table table_of(const TimedCommands& timed) {
  document::Table table{.id = "commands", .title = "Times"};
  table.columns = {{.id = "command", .title = "command", .align = document::Align::left},
                   {.id = "state", .title = "state", .align = document::Align::left},
                   {.id = "runs", .title = "runs"},
                   {.id = "time", .title = "median"},
                   {.id = "fastest", .title = "fastest"},
                   {.id = "slowest", .title = "slowest"},
                   {.id = "speedup", .title = "speedup (99% CI)"},
                   {.id = "verdict", .title = "verdict", .align = document::Align::left},
                   {.id = "processor_time", .title = "processor time"},
                   {.id = "peak_memory", .title = "peak memory"}};
  for (std::size_t i = 0; i < timed.commands.size(); ++i) table.rows.push_back(row_of(timed, i));
  const bool all = std::all_of(timed.commands.begin(), timed.commands.end(),
                               [](const TimedCommand& command) { return command.reason.empty(); });
  if (!all) {  // a column that says of all that nothing happened is none
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
      table.rows[i].resize(table.columns.size(), document::Absent{});
      table.rows[i].emplace_back(timed.commands[i].reason);
    }
    table.columns.push_back({.id = "reason", .title = "why", .align = document::Align::left});
  }
  table.note =
      "Speedup over the first command, by pairs of runs that followed each other; a time is that of a process from its "
      "start to its end, or of an iteration in a process that serves. Nothing is proven of what the commands do.";
  return table;
}

document::Figure figure_of(const TimedCommands& timed) {
  document::Figure figure{.id = "runs", .title = "Every run"};
  document::Panel panel;
  panel.x = {.title = "run", .format = NumberFormat::count};
  panel.y = {.title = "time", .format = NumberFormat::seconds, .from_zero = true};
  for (const auto& command : timed.commands) {
    document::Line line;
    line.name = command.name;
    line.marks_only = true;
    for (std::size_t run = 0; run < command.wall_ns.size(); ++run) {
      line.x.push_back(static_cast<double>(run + 1));
      line.y.push_back(1e-9 * command.wall_ns[run]);
    }
    if (!line.x.empty()) panel.lines.push_back(std::move(line));
  }
  figure.panels.push_back(std::move(panel));
  return figure;
}

// Of one command beside the first; with its full stop.
std::string sentence_of(const TimedCommands& timed, std::size_t i) {
  const auto& command = timed.commands[i];
  const auto& first = timed.commands.front();
  const auto speedup = analysis::speedup_of(timed, i);
  if (!speedup || !speedup->value) return fmt::format("{} has no number ({}).", command.name, to_string(command.state));
  const auto verdict = speedup->verdict.value_or(RatioVerdict::inconclusive);
  const std::string interval =
      speedup->low && speedup->high ? fmt::format(" ({:.2f} to {:.2f})", *speedup->low, *speedup->high) : "";
  if (verdict == RatioVerdict::inconclusive)
    return fmt::format("It is inconclusive whether {} is faster than {}: {:.2f} times as fast{}.", command.name,
                       first.name, *speedup->value, interval);
  if (verdict == RatioVerdict::same)
    return fmt::format("{} takes as long as {}: {:.2f} times as fast{}.", command.name, first.name, *speedup->value,
                       interval);
  return fmt::format("{} is {:.2f} times as fast as {}{}.", command.name, *speedup->value, first.name, interval);
}

}  // namespace

document::Document commands_document(const TimedCommands& timed) {
  document::Document page;
  page.title = fmt::format("strata compare: {} commands", timed.commands.size());
  if (timed.commands.front().state != State::measured) {
    page.summary =
        fmt::format("{}, the first, has no number: {}.", timed.commands.front().name, timed.commands.front().reason);
  } else {
    for (std::size_t i = 1; i < timed.commands.size(); ++i)
      page.summary += fmt::format("{}{}", i == 1 ? "" : " ", sentence_of(timed, i));
  }
  document::Section section{.id = "commands", .title = "Commands"};
  if (!analysis::is_reliable(timed))
    section.items.emplace_back(document::Text{
        fmt::format("W002: other programs and the host used {:.0f}% of the machine meanwhile, so that no verdict is "
                    "given. Measure on an idle machine",
                    100 * *timed.others),
        document::Text::Kind::warning});
  section.items.emplace_back(table_of(timed));
  section.items.emplace_back(figure_of(timed));
  page.sections.push_back(std::move(section));
  if (!timed.cpu.empty()) page.facts.push_back({"machine", fmt::format("{}, {} cores", timed.cpu, timed.cores)});
  if (!timed.began_at.empty()) page.facts.push_back({"measured", timed.began_at});
  return page;
}

}  // namespace strata::report
