// SPDX-License-Identifier: Apache-2.0
// A case's first screen, its rows without a number, all its numbers and its certificates (html_parts.hpp).
#include <fmt/format.h>

#include <algorithm>

#include "report/bill.hpp"
#include "report/first_screen.hpp"
#include "report/html_parts.hpp"
#include "report/phases.hpp"
#include "report/settings.hpp"
#include "report/slo.hpp"
#include "report/tuning_table.hpp"

namespace strata::report {
namespace {

std::string shown(const Json& row, const char* path, std::string (*write)(double)) {
  const auto value = number(row, path);
  return value ? write(*value) : "";
}

std::string time_bar(const std::string& label, double ms, double longest) {
  return fmt::format(R"(<span class="bar" aria-hidden="true"><i style="width:{:.1f}%"></i></span>{})",
                     longest > 0 ? 100 * ms / longest : 0, escape_html(label));
}

std::string verdict_markup(const LevelLine& level) {
  if (level.verdict.empty()) return escape_html(level.ratio);
  const auto css = level.verdict == "not resolved" ? "open" : level.verdict;
  auto out = fmt::format(R"({} <span class="{}">{}</span>)", escape_html(level.ratio), css, level.verdict);
  if (const auto within = number(*level.row, "ratio.same_within_percent"); within && level.verdict == "same")
    out += " within " + percent(*within);
  return out;
}

std::string level_rows(const FirstScreen& screen) {
  double longest = 0;
  for (const auto& level : screen.levels)
    if (!level.harness) longest = std::max(longest, number(*level.row, "end_to_end_ms.estimate").value_or(0));
  std::vector<std::string> header{"level", "time", "times as fast (99% interval)"};
  if (screen.has_tuned) header.push_back("tuned against tuned");
  header.insert(header.end(), {"p99", "memory"});
  if (screen.has_device_memory) header.push_back("GPU memory");
  header.insert(header.end(), {"start again", "proof"});
  std::vector<std::vector<Cell>> rows;
  for (const auto& level : screen.levels) {
    const auto name = escape_html(level.name);
    auto time = markup(
        time_bar(level.time, level.harness ? 0 : number(*level.row, "end_to_end_ms.estimate").value_or(0), longest));
    time.is_number = true;
    std::vector<Cell> row{
        markup(level.recommended ? "<strong>" + name + R"(</strong> <span class="pick">recommended</span>)" : name),
        time, markup(verdict_markup(level))};
    if (screen.has_tuned) row.push_back(number_cell(level.tuned));
    row.insert(row.end(), {number_cell(level.p99), number_cell(level.memory)});
    if (screen.has_device_memory) row.push_back(number_cell(level.device_memory));
    row.insert(row.end(), {number_cell(level.start_again), words(level.proof)});
    rows.push_back(row);
  }
  return html_table("Levels with a number, from Python downwards; peers and the harness last", header, rows,
                    screen.has_tuned ? "levels crowded" : "levels");
}

std::string phase_rows(const Json& one_case) {
  const auto phases = phase_table(one_case, glyphs(true));
  if (phases.rows.empty()) return "";
  std::vector<std::vector<Cell>> rows;
  for (const auto& cells : phases.rows) {
    rows.push_back({words(cells.front())});
    for (std::size_t i = 1; i < cells.size(); ++i) rows.back().push_back(number_cell(cells[i]));
  }
  return html_table("Phases of a training step, medians of a pass of their own", phases.header, rows);
}

std::string empty_rows(const FirstScreen& screen) {
  std::string out = R"(<div class="without"><h3>Levels without a number</h3><ul>)";
  for (const auto& empty : screen.without)
    out += fmt::format(R"(<li><strong>{}</strong> <span class="state">{}{}</span> {}</li>)", escape_html(empty.names),
                       escape_html(empty.state), empty.reason.empty() ? "" : ":", escape_html(empty.reason));
  return out + "</ul></div>\n";
}

// What --tuned tried, folded: the levels' own lines say what came of it.
std::string tuning_details(const Json& one_case) {
  const auto tuning = tuning_table(one_case, glyphs(true), false);
  if (tuning.rows.empty() && tuning.untried.empty()) return "";
  std::vector<std::vector<Cell>> rows;
  for (const auto& cells : tuning.rows)
    rows.push_back({words(cells[0]), number_cell(cells[1]), number_cell(cells[2]), words(cells[3]), words(cells[4])});
  std::string body;
  if (!rows.empty()) body += html_table(tuning.note, tuning.header, rows, "wraps");
  for (const auto& levels : tuning.untried) body += "<p>" + escape_html(levels) + ".</p>";
  return html_details("What was tried to find each level's best variant", body);
}

// One level without a number in full: reason, what to do, the end of its log, how to repeat it.
std::string failure(const Json& row) {
  std::string body = "<p>" + escape_html(text(row, "reason")) + "</p>";
  if (const auto hint = text(row, "hint"); !hint.empty()) body += "<p>What to do: " + escape_html(hint) + "</p>";
  if (const auto log = text(row, "log_tail"); !log.empty())
    body +=
        R"(<p class="note">The end of its log:</p><pre tabindex="0" aria-label="log">)" + escape_html(log) + "</pre>";
  if (const auto repeat = text(row, "repeat"); !repeat.empty())
    body += R"(<p class="note">To repeat it:</p><pre tabindex="0" aria-label="command"><code>)" + escape_html(repeat) +
            "</code></pre>";
  return html_details(level_name(row) + ": " + text(row, "state"), body);
}

std::string proof_summary(const Json& row) {
  const auto verdict = text(row, "proof.verdict");
  auto out = level_name(row) + ": " +
             (verdict == "equal_looser" ? "equal, looser numerics"
              : verdict.empty()         ? "none"
                                        : verdict);
  if (flag(row, "proof.weak")) out += ", weak";
  const auto part = [&](const char* key) { return count(number(row, std::string("proof.") + key).value_or(0)); };
  return out +
         fmt::format(" ({} observed, {} reported, {} assumed)", part("observed"), part("reported"), part("assumed"));
}

std::string certificate(const Json& row) {
  std::vector<std::vector<Cell>> rows;
  for (const auto& line : list(row, "proof.lines")) {
    const auto result = text(line, "result");
    const auto css = result == "pass" ? "faster" : result == "fail" ? "slower" : "open";
    rows.push_back({words(text(line, "check")), words(text(line, "how")),
                    markup(fmt::format(R"(<span class="{}">{}</span>)", css,
                                       escape_html(result == "not_checked" ? "not checked" : result))),
                    words(text(line, "value")), words(text(line, "bound")), words(text(line, "detail"))});
  }
  std::string body;
  if (const auto first = text(row, "proof.first_difference"); !first.empty())
    body += "<p>First difference at <code>" + escape_html(first) + "</code>.</p>";
  if (rows.empty()) return html_details(proof_summary(row), body + "<p>No line was checked.</p>");
  return html_details(proof_summary(row),
                      body + html_table("Certificate of " + level_name(row),
                                        {"check", "how", "result", "value", "bound", "detail"}, rows, "proof"));
}

}  // namespace

std::string html_first_screen(const Json& run, const Json& one_case, const std::string& where) {
  const auto screen = first_screen(run, one_case, glyphs(true));
  std::string out = fmt::format(
      R"(<section class="first" aria-label="Result"><p class="sentence verdict-{}" id="{}-sentence">{}</p><p class="what">{}</p>)",
      escape_html(screen.verdict), where, escape_html(screen.sentence), escape_html(screen.what));
  if (!screen.levels.empty()) out += level_rows(screen) + phase_rows(one_case);
  if (const auto limit = slo_title(one_case); !limit.empty()) {
    out += "<div class=\"without\"><h3>What each level needs for " + escape_html(limit) + "</h3><ul>";
    for (const auto& line : slo_lines(one_case)) out += "<li>" + escape_html(line) + "</li>";
    out += "</ul></div>\n";
  }
  if (!screen.without.empty()) out += empty_rows(screen);
  out += tuning_details(one_case);
  out += R"(<dl class="lines">)";
  if (!screen.limit.empty())
    out += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", screen.limit_title, escape_html(screen.limit));
  out += fmt::format("<div><dt>Trust</dt><dd>{}</dd></div>", escape_html(screen.trust));
  if (!screen.next.empty())
    out += fmt::format(
        R"(<div><dt>Next</dt><dd><pre tabindex="0" aria-label="next command"><code>{}</code></pre></dd></div>)",
        escape_html(screen.next));
  return out + "</dl></section>\n";
}

std::string html_all_numbers(const Json& one_case, const std::string& where) {
  std::vector<std::vector<Cell>> times, other;
  std::string failures;
  for (const Json* row : sorted_rows(one_case)) {
    if (!is_measured(*row)) {
      failures += failure(*row);
      continue;
    }
    const auto time = [&](const char* path) { return number_cell(shown(*row, path, duration)); };
    const auto aa = at(*row, "aa.ratio").is_object() ? ratio_with_interval(at(*row, "aa.ratio"), glyphs(true)) + " " +
                                                           verdict_words(text(*row, "aa.verdict"))
                                                     : "";
    times.push_back({words(level_name(*row)), time("end_to_end_ms.estimate"), time("end_to_end_ms.median"),
                     time("end_to_end_ms.p90"), time("end_to_end_ms.p99"), time("end_to_end_ms.min"),
                     number_cell(shown(*row, "end_to_end_ms.samples", count)), time("latency_ms.estimate"),
                     number_cell(shown(*row, "throughput_per_s", scaled)), time("cpu_ms"), number_cell(aa)});
    other.push_back({words(level_name(*row)), words(text(*row, "title")), number_cell(shown(*row, "disk_bytes", size)),
                     number_cell(shown(*row, "artefact_bytes", size)),
                     words(settings_words(*row) + (fact_words(*row).empty() ? "" : "; " + fact_words(*row)))});
  }
  std::string out = fmt::format(
      R"(<section id="{0}-numbers" aria-labelledby="{0}-numbers-h"><h3 id="{0}-numbers-h">All numbers</h3>)", where);
  if (!times.empty()) {
    out +=
        html_table(is_training(one_case) ? "Times of one training step, from the caller's host tensor to the host loss"
                                         : "Times of one iteration, from the caller's host tensor to the host result",
                   {"level", "estimate", "median", "p90", "p99", "minimum", "samples", "run and wait",
                    "inputs a second", "CPU time", "against itself"},
                   times);
    out += html_table("Size on disk and settings, as the levels report them",
                      {"level", "what it is", "its cache folder", "artefact", "settings"}, other, "wide");
  }
  if (!failures.empty()) out += "<h4>Why levels have no number</h4>" + failures;
  return out + "</section>\n";
}

std::string html_certificates(const Json& one_case, const std::string& where) {
  std::string out = fmt::format(
      R"(<section id="{0}-proof" aria-labelledby="{0}-proof-h"><h3 id="{0}-proof-h">Certificate of equal work</h3>)",
      where);
  out += R"(<p class="note">Each line is observed by the harness, reported by the level, or assumed.</p>)";
  std::string all;
  for (const Json* row : sorted_rows(one_case))
    if (at(*row, "proof").is_object()) all += certificate(*row);
  return out + (all.empty() ? "<p>No level got as far as its proof.</p>" : all) + "</section>\n";
}

}  // namespace strata::report
