// SPDX-License-Identifier: Apache-2.0
#include "report/first_screen.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "analysis/warnings.hpp"
#include "plan/environment.hpp"
#include "report/access.hpp"
#include "report/sentence.hpp"
#include "stats/half_width.hpp"

namespace strata::report {
using analysis::CaseResult;
using analysis::OptionalNumber;
using analysis::RatioVerdict;
using analysis::RowResult;
using analysis::RunResult;
using analysis::TrustFacts;
using analysis::WarningText;
namespace {

template <class Write>
std::string or_missing(OptionalNumber value, const Glyphs& glyphs, Write write) {
  return value ? write(*value) : glyphs.missing;
}

std::string join(const std::vector<std::string>& parts, const std::string& between) {
  std::string out;
  for (const auto& part : parts)
    if (!part.empty()) out += (out.empty() ? "" : between) + part;
  return out;
}

bool is_of_all_samples(const RowResult& row) {
  return row.end_to_end_ms && row.end_to_end_ms->is_median;
}

OptionalNumber device_peak_bytes(const RowResult& row) {
  return row.memory ? row.memory->device_peak_bytes : std::nullopt;
}

bool is_reference(const RowResult& row) {
  return row.reference || (row.ratio && row.ratio->verdict == RatioVerdict::reference);
}

// "faster", "slower", "same", "inconclusive"; "" of the reference and of what has no ratio.
std::string shown_verdict(const std::optional<analysis::Ratio>& ratio) {
  return ratio && ratio->verdict != RatioVerdict::reference ? to_string(ratio->verdict) : "";
}

LevelLine level_line(const RowResult& row, const Glyphs& glyphs) {
  LevelLine line{.row = &row, .name = row.name()};
  line.harness = row.harness;
  line.time = or_missing(row.estimate_ms(), glyphs, duration);
  if (is_of_all_samples(row)) line.time += " *";
  line.p99 = or_missing(row.end_to_end_ms ? row.end_to_end_ms->p99 : std::nullopt, glyphs, duration);
  line.memory = or_missing(row.peak_private_bytes(), glyphs, size);
  line.device_memory = or_missing(device_peak_bytes(row), glyphs, size);
  line.warm_start = or_missing(row.warm_start_ms(), glyphs, duration);
  line.proof = proof_mark(row, false);
  line.proof_short = proof_mark(row, true);
  if (line.harness) {
    line.ratio = "harness";
    return line;
  }
  line.verdict = shown_verdict(row.ratio);
  line.ratio = is_reference(row) ? "reference" : row.ratio ? ratio_with_interval(*row.ratio, glyphs) : glyphs.missing;
  if (row.tuned && row.tuned->ratio) {
    const auto& tuned = *row.tuned->ratio;
    const bool reference = tuned.verdict == RatioVerdict::reference;
    const auto open = tuned.verdict == RatioVerdict::inconclusive && tuned.value ? "~" : "";
    line.tuned = reference ? "reference" : open + ratio_with_interval(tuned, glyphs);
    line.tuned_short = reference ? "ref" : open + or_missing(tuned.value, glyphs, ratio);
  }
  return line;
}

// Adds a level without a number, to the line of those with its state and reason if there is one.
void add_empty(std::vector<EmptyLine>& lines, const RowResult& row) {
  const auto reason = first_sentence(row.reason_short.empty() ? row.reason : row.reason_short);
  const auto state = spaced(to_string(row.state));
  const auto alike = std::find_if(lines.begin(), lines.end(),
                                  [&](const EmptyLine& line) { return line.state == state && line.reason == reason; });
  if (alike != lines.end())
    alike->names += ", " + row.name();
  else
    lines.push_back({.names = row.name(),
                     .state = state,
                     .reason = reason,
                     .not_run = row.state == State::unsupported || row.state == State::unavailable});
}

// A warning of another case of the run is not this one's.
bool concerns(const WarningText& warning, const CaseResult& one_case) {
  return warning.case_key.empty() || warning.case_key == one_case.key;
}

struct Meaning {
  std::string_view state, words;
};
constexpr std::array<Meaning, 9> kMeanings{{
    {"unequal", "its answers are not the network's"},
    {"mistrusted", "what it tells of its times, inputs or threads does not hold"},
    {"unproven", "no proof of this network could have failed"},
    {"unsupported", "it cannot run this network or this case"},
    {"unavailable", "what it needs is not here"},
    {"out of memory", "it needs more than there was"},
    {"timeout", "it did not answer within --timeout"},
    {"crashed", "a signal ended its process"},
    {"failed", "an error ended it"},
}};

std::string state_note(const std::vector<EmptyLine>& lines) {
  std::string out;
  for (const auto& meaning : kMeanings)
    if (std::ranges::any_of(lines, [&](const auto& line) { return line.state == meaning.state; }))
      out += fmt::format("{}{}: {}", out.empty() ? "" : "; ", meaning.state, meaning.words);
  return out;
}

std::string proof_note(const RunResult& run, const CaseResult& one_case, const std::vector<LevelLine>& levels) {
  if (levels.empty()) return "";
  const auto any = [&](const char* word) {
    return std::ranges::any_of(levels, [&](const auto& line) { return line.proof.ends_with(word); });
  };
  std::string out = "proof: how many lines of the certificate strata observed, and how many the level itself reported";
  if (any("looser") || any("looser, weak"))
    out += "; looser: it adds in another order, as it declares, and may be off by 64 envelopes, not 8";
  if (!any("weak")) return out;
  out += "; weak: a fault could stay unseen";
  for (const auto& warning : run.warnings)
    if (warning.id == analysis::warnings::kWeakProof && concerns(warning, one_case))
      return fmt::format("{} ({}): {}", out, warning.what, warning.advice);
  return out + ", as its certificate says";
}

std::vector<std::pair<std::string, std::string>> about(const std::vector<LevelLine>& levels) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& line : levels) {
    const auto& row = *line.row;
    const auto participant = row.participant();
    const auto name = participant.level_and_variant();
    const auto title = row.title + (participant.is_plain() ? "" : ": " + row.default_text);
    const bool known = std::ranges::any_of(out, [&](const auto& entry) { return entry.first == name; });
    if (!known && !row.title.empty()) out.emplace_back(name, title);
  }
  return out;
}

// "3.28 MFLOP", and what is not in it.
std::string operations_of(const CaseResult& one_case) {
  const auto flops = one_case.flops;
  auto uncounted = one_case.flops_uncounted;
  if (!flops || (*flops <= 0 && !uncounted.empty())) return "operations not counted";
  const auto counted = *flops > 0 ? scaled(static_cast<double>(*flops)) + "FLOP" : "0 FLOP";
  constexpr std::size_t most = 3;
  if (uncounted.empty()) return counted;
  const auto more = uncounted.size() > most ? fmt::format(" and {} more", uncounted.size() - most) : "";
  uncounted.resize(std::min(uncounted.size(), most));
  return fmt::format("{} without {}{}", counted, fmt::join(uncounted, ", "), more);
}

std::string what_was_run(const RunResult& run, const CaseResult& one_case, const Glyphs& glyphs) {
  const auto& parameters = one_case.parameters;
  const auto &input = one_case.input_source, &weights = one_case.weight_source;
  const auto cpu = text(run.machine, "cpu"), gpu = text(run.machine, "gpu"), cores = text(run.machine, "cores");
  const auto& environments = run.environments;
  auto torch = plan::torch_versions(environments);
  if (!torch.empty()) torch = "PyTorch " + torch;
  if (const auto first = environments.size() > 1 ? text(environments.front(), "name") : ""; !first.empty())
    torch += ", captured in " + first;
  return join(
      {join({parameters ? count(*parameters) + " parameters" : "", operations_of(one_case)}, ", "),
       input.empty() ? "" : "input: " + input, weights.empty() ? "" : "weights: " + weights, one_case.model.note,
       cpu.empty() ? "" : cpu + (cores.empty() ? "" : " (" + cores + " cores)"), gpu, torch},
      glyphs.dot);
}

// "" where the machine's rates bound nothing, or the work could not be counted.
std::string limit_line(const CaseResult& one_case, const std::vector<LevelLine>& levels) {
  const auto& limits = one_case.limits;
  const double limit = limits ? limits->limit_ms.value_or(0) : 0;
  if (limit <= 0) return "";
  const bool bound = limits->kind == "bound";
  std::string line = duration(limit) + " at this machine's measured ";
  if (!bound)
    line += scaled(limits->gflops * 1e9) + "FLOP/s";
  else
    line += scaled(limits->gbytes_per_s * 1e9) + "B/s" +
            (limits->memory_bytes ? " for the " + size(*limits->memory_bytes) + " that no cache holds" : "");
  const LevelLine* nearest = nullptr;
  double time = 0;
  for (const auto& level : levels) {
    const auto ms = level.row->estimate_ms();
    if (level.harness || !ms || (nearest && *ms >= time)) continue;
    nearest = &level;
    time = *ms;
  }
  if (!nearest) return line;
  const auto* why = time >= limit ? ""
                    : bound       ? " (a rate measured too low)"
                                  : " (fewer operations than counted, as by Winograd or fusion)";
  return line + fmt::format("; {} takes {} times that{}", nearest->name, ratio(time / limit), why);
}

// "2 restarts, 1 with undisturbed rounds (fewer than 3 show no spread of their own: 10% between processes is assumed)"
std::string restarts_words(const TrustFacts& trust) {
  const auto restarts = trust.restarts, compared = trust.restarts_compared;
  if (!restarts) return "";
  auto words = count(*restarts) + (*restarts == 1 ? " restart" : " restarts");
  if (compared && *compared < *restarts) words += fmt::format(", {} with undisturbed rounds", count(*compared));
  const auto most = trust.most_process_effect_percent;
  if (compared && most && *compared > 0 && *compared < stats::fewest_with_scatter)
    words += fmt::format(" (fewer than {} show no spread of their own: {} between processes is assumed)",
                         stats::fewest_with_scatter, percent(*most));
  return words;
}

// What the run could have seen: "smallest visible effect 5.5%", of the level that is worst off. Levels that see only
// multiples are named by themselves, since the others' comparisons hold.
std::string visible_words(const CaseResult& one_case) {
  const auto worst = one_case.trust.smallest_visible_percent;
  if (!worst) return "";
  if (*worst <= too_noisy_percent) return "smallest visible effect " + percent(*worst);
  std::string noisy;
  double visible = 0;
  for (const auto& row : one_case.rows) {
    const auto sees = row.ratio ? row.ratio->smallest_visible_percent : std::nullopt;
    if (!sees || row.reference || row.harness) continue;
    if (*sees > too_noisy_percent)
      noisy += (noisy.empty() ? "" : ", ") + row.name();
    else
      visible = std::max(visible, *sees);
  }
  if (noisy.empty() || visible <= 0) return "this run is too noisy to compare";
  return fmt::format("smallest visible effect {}, of {} more than {}", percent(visible), noisy,
                     percent(too_noisy_percent));
}

// "process effect 0.25% to 1.1% (learned from 18 restarts in 3 earlier runs), else at least 1.5% (assumed)". Where
// levels were learned from more and from less, what is said is the least.
std::string process_words(const CaseResult& one_case) {
  const auto elsewhere = one_case.trust.process_effect_percent;
  const auto other = elsewhere
                         ? fmt::format("at least {} ({})", percent(*elsewhere), one_case.trust.process_effect_source)
                         : std::string();
  OptionalNumber low, high;
  std::optional<int> restarts, runs;
  bool all = true;
  for (const auto& row : one_case.rows) {
    if (!row.ratio || !row.ratio->value || row.reference || row.harness) continue;
    const auto& learned = row.ratio->learned;
    if (!learned) {
      all = false;
      continue;
    }
    const double effect = learned->process_effect_percent;
    low = std::min(low.value_or(effect), effect);
    high = std::max(high.value_or(effect), effect);
    if (!restarts || learned->restarts < *restarts) runs = learned->runs;
    restarts = std::min(restarts.value_or(learned->restarts), learned->restarts);
  }
  if (!restarts) return other.empty() ? other : "process effect " + other;
  const auto least = percent(*low), most = percent(*high);
  return fmt::format("process effect {}{} (learned from {} restarts in {} earlier run{}){}", least,
                     most == least ? "" : " to " + most, count(*restarts), count(*runs), *runs == 1 ? "" : "s",
                     all || other.empty() ? "" : ", else " + other);
}

std::string trust_line(const RunResult& run, const CaseResult& one_case, const Glyphs& glyphs) {
  const auto& trust = one_case.trust;
  std::vector<std::string> parts{restarts_words(trust), process_words(one_case), visible_words(one_case)};
  if (trust.blocks && trust.disturbed_blocks)
    parts.push_back(fmt::format("{} of {} blocks disturbed", count(*trust.disturbed_blocks), count(*trust.blocks)));
  if (const auto& aa = one_case.aa)
    parts.push_back(fmt::format("against itself: {} of {} false alarms{}", count(aa->false_alarms),
                                count(aa->comparisons),
                                aa->bound_percent ? " (at most " + percent(*aa->bound_percent) + ")" : ""));
  if (trust.others_percent && *trust.others_percent > 10)
    parts.push_back(fmt::format("others used {:.0f}% of the machine", *trust.others_percent));
  if (std::ranges::any_of(one_case.rows, is_of_all_samples))
    parts.push_back("* median of all samples, since most blocks were disturbed");
  std::vector<std::string> ids;
  for (const auto& warning : run.warnings)
    if (concerns(warning, one_case) && std::ranges::find(ids, warning.id) == ids.end()) ids.push_back(warning.id);
  if (!ids.empty()) parts.push_back("warnings " + join(ids, ", "));
  if (run.run.interrupted) parts.push_back("interrupted");
  return join(parts, glyphs.dot);
}

}  // namespace

std::string limit_title(const CaseResult& one_case) {
  return one_case.limits && one_case.limits->kind == "bound" ? "Limit" : "Roofline";
}

std::string proof_mark(const RowResult& row, bool shortened) {
  const auto& proof = row.proof;
  if (!proof || proof->verdict == "none") return "none";
  auto mark = fmt::format(fmt::runtime(shortened ? "{} obs, {} rep" : "{} observed, {} reported"),
                          count(proof->observed), count(proof->reported));
  if (proof->verdict == "equal_looser") mark += shortened ? ", loose" : ", looser";
  if (proof->weak) mark += ", weak";
  return mark;
}

std::string ratio_with_interval(const analysis::Estimate& estimate, const Glyphs& glyphs) {
  const auto& [value, low, high] = estimate;
  if (!value) return glyphs.missing;
  return ratio(*value) + (low && high ? " (" + ratio(*low) + glyphs.range + ratio(*high) + ")" : "");
}

FirstScreen first_screen(const RunResult& run, const CaseResult& one_case, const Glyphs& glyphs) {
  const auto summary = one_case.headline ? *one_case.headline : headline(one_case);
  FirstScreen screen{.id = one_case.id,
                     .verdict = to_string(summary.verdict),
                     .sentence = summary.sentence,
                     .what = what_was_run(run, one_case, glyphs)};
  for (const auto* row : one_case.sorted_rows()) {
    if (!row->is_measured()) {
      add_empty(screen.without, *row);
      continue;
    }
    screen.levels.push_back(level_line(*row, glyphs));
    auto& line = screen.levels.back();
    line.recommended = summary.verdict == analysis::HeadlineVerdict::move && line.name == summary.level;
    screen.has_tuned = screen.has_tuned || !line.tuned.empty();
    screen.has_device_memory = screen.has_device_memory || device_peak_bytes(*row);
  }
  std::stable_partition(screen.without.begin(), screen.without.end(),
                        [](const EmptyLine& line) { return !line.not_run; });
  screen.about = about(screen.levels);
  screen.proof_note = proof_note(run, one_case, screen.levels);
  screen.state_note = state_note(screen.without);
  for (const auto& warning : run.warnings)
    if (warning.id == analysis::warnings::kOthersAgree && concerns(warning, one_case))
      screen.doubt = fmt::format("{} ({})", warning.what, warning.advice);
  screen.limit = limit_line(one_case, screen.levels);
  screen.limit_title = limit_title(one_case);
  screen.trust = trust_line(run, one_case, glyphs);
  screen.next = one_case.next_command;
  return screen;
}

}  // namespace strata::report
