// SPDX-License-Identifier: Apache-2.0
#include "report/accuracy_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "report/first_screen.hpp"

namespace strata::report {
namespace {

// 0.0123 -> "1.2e-02": errors of different modes lie thousands of times apart.
std::string error_text(double value) {
  return fmt::format("{:.1e}", value);
}

// A score's own digits: four significant ones, fixed.
std::string score_text(double value) {
  return std::abs(value) >= 100 ? fmt::format("{:.1f}", value) : fmt::format("{:.4g}", value);
}

std::string change(double value) {
  return value == 0 ? "0" : fmt::format("{:+.2g}", value);
}

std::string score_difference(const Json& point, const Glyphs& glyphs) {
  const auto value = number(point, "eval.difference.value"), low = number(point, "eval.difference.low"),
             high = number(point, "eval.difference.high");
  if (!value || flag(point, "reference")) return glyphs.missing;
  return low && high ? fmt::format("{} ({} to {})", change(*value), change(*low), change(*high)) : change(*value);
}

std::string of_count(const Json& point, const char* part, const char* whole, const Glyphs& glyphs) {
  const auto differ = number(point, part), all = number(point, whole);
  return differ && all && *all > 0 ? fmt::format("{} of {}", count(*differ), count(*all)) : glyphs.missing;
}

std::string ratio_cell(const Json& point, const Glyphs& glyphs) {
  if (flag(point, "reference")) return "reference";
  const auto text = ratio_with_interval(at(point, "ratio"), glyphs);
  return number(point, "ratio.value") && !flag(point, "ratio.together") ? text + " *" : text;
}

std::string sentence_of(const Json& point, const std::string& reference, const Glyphs& glyphs) {
  std::string out = fmt::format("{} in {}: ", level_name(point), text(point, "maths"));
  if (const auto faster = number(point, "ratio.value")) out += fmt::format("{} times as fast, ", ratio(*faster));
  const auto value = number(point, "eval.difference.value"), low = number(point, "eval.difference.low"),
             high = number(point, "eval.difference.high");
  out += fmt::format("score {} against {}", value && *value == 0 ? "+0" : change(value.value_or(0)), reference);
  if (low && high) out += fmt::format(" (99%: {} to {})", change(*low), change(*high));
  if (const auto differ = of_count(point, "eval.differ", "eval.count", glyphs); differ != glyphs.missing)
    out += fmt::format(", {} answers differ", differ);
  return out;
}

// "fp32, bf16": the modes whose case was measured beside other programs.
std::string unreliable_modes(const Json& points) {
  std::vector<std::string> modes;
  for (const auto& point : points)
    if (at(point, "reliable") == false && std::find(modes.begin(), modes.end(), text(point, "maths")) == modes.end())
      modes.push_back(text(point, "maths"));
  return fmt::format("{}", fmt::join(modes, ", "));
}

AccuracyTable table_of(const Json& group, const Glyphs& glyphs, bool brief) {
  AccuracyTable out;
  const auto& points = list(group, "points");
  const bool scored =
      std::any_of(points.begin(), points.end(), [](const Json& p) { return at(p, "eval").is_object(); });
  out.title = "Accuracy against speed, " + text(group, "id");
  out.header =
      brief ? Cells{"level", "maths", "time", "times as fast", "error", "differ"}
            : Cells{"level", "maths", "time", "times as fast (99% interval)", "error", "other answer than float64"};
  if (scored) out.header.push_back("score");
  if (scored && !brief)
    out.header.insert(out.header.end(), {"against the reference (99% interval)", "answers that differ"});
  for (const auto& point : points) {
    const auto time = number(point, "time_ms"), error = number(point, "error"), score = number(point, "eval.score");
    Cells cells{level_name(point),
                text(point, "maths"),
                time ? duration(*time) : glyphs.missing,
                ratio_cell(point, glyphs),
                error ? error_text(*error) : glyphs.missing,
                of_count(point, "differ", "answers", glyphs)};
    if (scored) {
      const auto state = text(point, "eval.state");
      const auto failure =
          score || state.empty() || state == "scored" ? "" : state + ": " + first_sentence(text(point, "eval.reason"));
      cells.push_back(score ? score_text(*score) : glyphs.missing);
      if (!brief)
        cells.insert(cells.end(), {score_difference(point, glyphs),
                                   flag(point, "reference") ? glyphs.missing
                                                            : of_count(point, "eval.differ", "eval.count", glyphs)});
      if (score && !flag(point, "reference") && number(point, "eval.difference.value"))
        out.sentences.push_back(sentence_of(point, text(group, "reference.level"), glyphs));
      if (!failure.empty())
        out.sentences.push_back(fmt::format("{} in {}: {}", level_name(point), text(point, "maths"), failure));
    }
    out.rows.push_back(std::move(cells));
  }
  if (at(group, "reference").is_object())
    out.note = fmt::format("Reference: {} in fp32. Error: relative, against float64.", text(group, "reference.level"));
  else
    out.note = "No reference: this run has no number for it in fp32. Error: relative, against float64.";
  if (const auto modes = unreliable_modes(points); !modes.empty())
    out.note += fmt::format(
        " The times in {} are not reliable and not compared: other programs had the cores while they were measured.",
        modes);
  if (flag(group, "measured_apart"))
    out.note +=
        " * Modes were measured one after the other: the machine's drift between them is not cancelled, the interval "
        "holds the process effect.";
  return out;
}

}  // namespace

std::vector<AccuracyTable> accuracy_tables(const Json& run, const Glyphs& glyphs, bool brief) {
  std::vector<AccuracyTable> out;
  for (const auto& group : list(run, "accuracy")) out.push_back(table_of(group, glyphs, brief));
  return out;
}

const Json& accuracy_point(const Json& run, const std::string& case_id, const Json& row) {
  static const Json none;
  for (const auto& group : list(run, "accuracy"))
    for (const auto& point : list(group, "points"))
      if (text(point, "case") == case_id && text(point, "level") == text(row, "level") &&
          text(point, "variant") == text(row, "variant") && text(point, "environment") == text(row, "environment"))
        return point;
  return none;
}

std::string accuracy_text(const Json& run, const Glyphs& glyphs, int width) {
  const auto columns = static_cast<std::size_t>(std::max(width, 40));
  std::string out;
  const auto add = [&](const std::string& paragraph) {
    for (const auto& line : wrap(printable(paragraph), columns)) out += line + "\n";
  };
  for (auto& one : accuracy_tables(run, glyphs, true)) {
    for (auto& row : one.rows)
      for (auto& cell : row) cell = printable(cell);
    out += "\n";
    add(one.title);
    out += table(one.header, one.rows, Format::text);
    for (const auto& sentence : one.sentences) add(sentence);
    add(one.note);
  }
  return out;
}

std::string accuracy_markdown(const Json& run) {
  std::string out;
  for (const auto& one : accuracy_tables(run, glyphs(true))) {
    out += fmt::format("\n## {}\n\n{}\n", markdown_text(one.title), table(one.header, one.rows, Format::md));
    for (const auto& sentence : one.sentences) out += "- " + markdown_text(sentence) + "\n";
    out += (one.sentences.empty() ? "" : "\n") + markdown_text(one.note) + "\n";
  }
  return out;
}

}  // namespace strata::report
