// SPDX-License-Identifier: Apache-2.0
#include "report/first_screen.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "analysis/warnings.hpp"
#include "report/environments.hpp"
#include "report/sentence.hpp"
#include "stats/half_width.hpp"

namespace strata::report {
namespace {

template <class Write>
std::string or_missing(std::optional<double> value, const Glyphs& glyphs, Write write) {
  return value ? write(*value) : glyphs.missing;
}

std::string join(const std::vector<std::string>& parts, const std::string& between) {
  std::string out;
  for (const auto& part : parts)
    if (!part.empty()) out += (out.empty() ? "" : between) + part;
  return out;
}

LevelLine level_line(const Json& row, const Glyphs& glyphs) {
  LevelLine line{.row = &row, .name = level_name(row)};
  line.harness = flag(row, "harness");
  line.time = or_missing(number(row, "end_to_end_ms.estimate"), glyphs, duration);
  if (flag(row, "end_to_end_ms.is_median")) line.time += " *";
  line.p99 = or_missing(number(row, "end_to_end_ms.p99"), glyphs, duration);
  line.memory = or_missing(number(row, "memory.peak_private_bytes"), glyphs, size);
  line.device_memory = or_missing(number(row, "memory.device_peak_bytes"), glyphs, size);
  line.warm_start = or_missing(number(row, "startup.warm_start_ms"), glyphs, duration);
  line.proof = proof_mark(row, false);
  line.proof_short = proof_mark(row, true);
  if (line.harness) {
    line.ratio = "harness";
    return line;
  }
  const auto verdict = text(row, "ratio.verdict");
  line.verdict = verdict_words(verdict);
  line.ratio =
      flag(row, "reference") || verdict == "reference" ? "reference" : ratio_with_interval(at(row, "ratio"), glyphs);
  if (const Json& tuned = at(row, "tuned.ratio"); tuned.is_object()) {
    const bool reference = text(tuned, "verdict") == "reference";
    const auto open = text(tuned, "verdict") == "inconclusive" && number(tuned, "value") ? "~" : "";
    line.tuned = reference ? "reference" : open + ratio_with_interval(tuned, glyphs);
    line.tuned_short = reference ? "ref" : open + or_missing(number(tuned, "value"), glyphs, ratio);
  }
  return line;
}

// Adds a level without a number, to the line of those with its state and reason if there is one.
void add_empty(std::vector<EmptyLine>& lines, const Json& row) {
  auto reason = text(row, "reason_short");
  if (reason.empty()) reason = text(row, "reason");
  reason = first_sentence(reason);
  const auto state = spaced(text(row, "state"));
  const bool not_run = state == "unsupported" || state == "unavailable" || state == "skipped";
  const auto alike = std::find_if(lines.begin(), lines.end(),
                                  [&](const EmptyLine& line) { return line.state == state && line.reason == reason; });
  if (alike == lines.end())
    lines.push_back({.names = level_name(row), .state = state, .reason = reason, .not_run = not_run});
  else
    alike->names += ", " + level_name(row);
}

// A warning of another case of the run is not this one's.
bool concerns(const Json& warning, const Json& one_case) {
  const auto key = text(warning, "case");
  return key.empty() || key == text(one_case, "key");
}

struct Meaning {
  std::string_view state, words;
};
constexpr std::array<Meaning, 10> kMeanings{{
    {"unequal", "its answers are not the network's"},
    {"mistrusted", "what it tells of its times, inputs or threads does not hold"},
    {"unproven", "no proof of this network could have failed"},
    {"unsupported", "it cannot run this network or this case"},
    {"unavailable", "what it needs is not here"},
    {"skipped", "the plan left it out"},
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

std::string proof_note(const Json& run, const Json& one_case, const std::vector<LevelLine>& levels) {
  if (levels.empty()) return "";
  const auto any = [&](const char* word) {
    return std::ranges::any_of(levels, [&](const auto& line) { return line.proof.ends_with(word); });
  };
  std::string out = "proof: how many lines of the certificate strata observed, and how many the level itself reported";
  if (any("looser") || any("looser, weak"))
    out += "; looser: it adds in another order, as it declares, and may be off by 64 envelopes, not 8";
  if (!any("weak")) return out;
  out += "; weak: a fault could stay unseen";
  for (const auto& warning : list(run, "warnings"))
    if (text(warning, "id") == analysis::warnings::kWeakProof && concerns(warning, one_case))
      return fmt::format("{} ({}): {}", out, text(warning, "what"), text(warning, "advice"));
  return out + ", as its certificate says";
}

std::vector<std::pair<std::string, std::string>> about(const std::vector<LevelLine>& levels) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& line : levels) {
    const auto participant = participant_of(*line.row);
    const auto name = participant.level_and_variant();
    const auto title = text(*line.row, "title") + (participant.is_plain() ? "" : ": " + text(*line.row, "default"));
    const bool known = std::ranges::any_of(out, [&](const auto& entry) { return entry.first == name; });
    if (!known && !text(*line.row, "title").empty()) out.emplace_back(name, title);
  }
  return out;
}

// "3.28 MFLOP", and what is not in it.
std::string operations_of(const Json& one_case) {
  if (!one_case.contains("flops")) return "";
  const auto flops = number(one_case, "flops");
  std::vector<std::string> uncounted;
  for (const auto& name : list(one_case, "flops_uncounted"))
    if (name.is_string()) uncounted.push_back(name.get<std::string>());
  if (!flops || (*flops <= 0 && !uncounted.empty())) return "operations not counted";
  const auto counted = *flops > 0 ? scaled(*flops) + "FLOP" : "0 FLOP";
  constexpr std::size_t most = 3;
  if (uncounted.empty()) return counted;
  const auto more = uncounted.size() > most ? fmt::format(" and {} more", uncounted.size() - most) : "";
  uncounted.resize(std::min(uncounted.size(), most));
  return fmt::format("{} without {}{}", counted, fmt::join(uncounted, ", "), more);
}

std::string what_was_run(const Json& run, const Json& one_case, const Glyphs& glyphs) {
  const auto parameters = number(one_case, "parameters");
  const auto input = text(one_case, "input_source"), weights = text(one_case, "weight_source");
  const auto cpu = text(run, "machine.cpu"), gpu = text(run, "machine.gpu"), cores = text(run, "machine.cores");
  const Json& environments = list(run, "environments");
  auto torch = torch_versions(environments);
  if (!torch.empty()) torch = "PyTorch " + torch;
  if (const auto first = environments.size() > 1 ? text(environments.front(), "name") : ""; !first.empty())
    torch += ", captured in " + first;
  return join({join({parameters ? count(*parameters) + " parameters" : "", operations_of(one_case)}, ", "),
               input.empty() ? "" : "input: " + input, weights.empty() ? "" : "weights: " + weights,
               text(one_case, "model.note"), cpu.empty() ? "" : cpu + (cores.empty() ? "" : " (" + cores + " cores)"),
               gpu, torch},
              glyphs.dot);
}

// "" where the machine's rates bound nothing, or the work could not be counted.
std::string limit_line(const Json& one_case, const std::vector<LevelLine>& levels) {
  const auto limit = number(one_case, "limits.limit_ms");
  if (!limit || *limit <= 0) return "";
  const bool bound = text(one_case, "limits.kind") == "bound";
  const auto gflops = number(one_case, "limits.gflops"), rate = number(one_case, "limits.gbytes_per_s"),
             bytes = number(one_case, "limits.memory_bytes");
  std::string line = duration(*limit) + " at this machine's measured ";
  if (!bound)
    line += gflops ? scaled(*gflops * 1e9) + "FLOP/s" : "peak rate";
  else
    line += (rate ? scaled(*rate * 1e9) + "B/s" : "bandwidth") +
            (bytes ? " for the " + size(*bytes) + " that no cache holds" : "");
  const LevelLine* nearest = nullptr;
  double time = 0;
  for (const auto& level : levels) {
    const auto ms = number(*level.row, "end_to_end_ms.estimate");
    if (level.harness || !ms || (nearest && *ms >= time)) continue;
    nearest = &level;
    time = *ms;
  }
  if (!nearest) return line;
  const auto* why = time >= *limit ? ""
                    : bound        ? " (a rate measured too low)"
                                   : " (fewer operations than counted, as by Winograd or fusion)";
  return line + fmt::format("; {} takes {} times that{}", nearest->name, ratio(time / *limit), why);
}

// "2 restarts, 1 with undisturbed rounds (fewer than 3 show no spread of their own: 10% between processes is assumed)"
std::string restarts_words(const Json& trust) {
  const auto restarts = number(trust, "restarts"), compared = number(trust, "restarts_compared");
  if (!restarts) return "";
  auto words = count(*restarts) + (*restarts == 1 ? " restart" : " restarts");
  if (compared && *compared < *restarts) words += fmt::format(", {} with undisturbed rounds", count(*compared));
  const auto most = number(trust, "most_process_effect_percent");
  if (compared && most && *compared > 0 && *compared < stats::fewest_with_scatter)
    words += fmt::format(" (fewer than {} show no spread of their own: {} between processes is assumed)",
                         stats::fewest_with_scatter, percent(*most));
  return words;
}

// What the run could have seen: "smallest visible effect 5.5%", of the level that is worst off. Levels that see only
// multiples are named by themselves, since the others' comparisons hold.
std::string visible_words(const Json& trust, const Json& rows) {
  const auto worst = number(trust, "smallest_visible_percent");
  if (!worst) return "";
  if (*worst <= too_noisy_percent) return "smallest visible effect " + percent(*worst);
  std::string noisy;
  double visible = 0;
  for (const auto& row : rows) {
    const auto sees = number(row, "ratio.smallest_visible_percent");
    if (!sees || flag(row, "reference") || flag(row, "harness")) continue;
    if (*sees > too_noisy_percent)
      noisy += (noisy.empty() ? "" : ", ") + level_name(row);
    else
      visible = std::max(visible, *sees);
  }
  if (noisy.empty() || visible <= 0) return "this run is too noisy to compare";
  return fmt::format("smallest visible effect {}, of {} more than {}", percent(visible), noisy,
                     percent(too_noisy_percent));
}

// "process effect 0.25% to 1.1% (learned from 18 restarts in 3 earlier runs), else at least 1.5% (assumed)". Where
// levels were learned from more and from less, what is said is the least.
std::string process_words(const Json& trust, const Json& rows) {
  const auto elsewhere = number(trust, "process_effect_percent");
  const auto other = elsewhere
                         ? fmt::format("at least {} ({})", percent(*elsewhere), text(trust, "process_effect_source"))
                         : std::string();
  std::optional<double> low, high, restarts, runs;
  bool all = true;
  for (const auto& row : rows) {
    if (!number(row, "ratio.value") || flag(row, "reference") || flag(row, "harness")) continue;
    const auto effect = number(row, "ratio.learned.process_effect_percent"),
               taught = number(row, "ratio.learned.restarts");
    if (!effect || !taught) {
      all = false;
      continue;
    }
    low = std::min(low.value_or(*effect), *effect);
    high = std::max(high.value_or(*effect), *effect);
    if (!restarts || *taught < *restarts) runs = number(row, "ratio.learned.runs");
    restarts = std::min(restarts.value_or(*taught), *taught);
  }
  if (!restarts) return other.empty() ? other : "process effect " + other;
  const auto least = percent(*low), most = percent(*high);
  return fmt::format("process effect {}{} (learned from {} restarts in {} earlier run{}){}", least,
                     most == least ? "" : " to " + most, count(*restarts), count(runs.value_or(1)),
                     runs.value_or(1) == 1 ? "" : "s", all || other.empty() ? "" : ", else " + other);
}

std::string trust_line(const Json& run, const Json& one_case, const Glyphs& glyphs) {
  const Json& trust = at(one_case, "trust");
  std::vector<std::string> parts;
  parts.push_back(restarts_words(trust));
  if (auto effect = process_words(trust, list(one_case, "rows")); !effect.empty()) parts.push_back(std::move(effect));
  if (auto visible = visible_words(trust, list(one_case, "rows")); !visible.empty())
    parts.push_back(std::move(visible));
  const auto blocks = number(trust, "blocks"), disturbed = number(trust, "disturbed_blocks");
  if (blocks && disturbed) parts.push_back(fmt::format("{} of {} blocks disturbed", count(*disturbed), count(*blocks)));
  if (const auto comparisons = number(one_case, "aa.comparisons")) {
    const auto bound = number(one_case, "aa.bound_percent");
    parts.push_back(fmt::format("against itself: {} of {} false alarms{}",
                                count(number(one_case, "aa.false_alarms").value_or(0)), count(*comparisons),
                                bound ? " (at most " + percent(*bound) + ")" : ""));
  }
  if (const auto others = number(trust, "others_percent"); others && *others > 10)
    parts.push_back(fmt::format("others used {:.0f}% of the machine", *others));
  const auto& rows = list(one_case, "rows");
  if (std::any_of(rows.begin(), rows.end(), [](const Json& row) { return flag(row, "end_to_end_ms.is_median"); }))
    parts.push_back("* median of all samples, since most blocks were disturbed");
  std::vector<std::string> ids;
  for (const auto& warning : list(run, "warnings"))
    if (concerns(warning, one_case) && std::find(ids.begin(), ids.end(), text(warning, "id")) == ids.end())
      ids.push_back(text(warning, "id"));
  if (!ids.empty()) parts.push_back("warnings " + join(ids, ", "));
  if (flag(run, "run.interrupted")) parts.push_back("interrupted");
  return parts.empty() ? "nothing was measured" : join(parts, glyphs.dot);
}

}  // namespace

std::string limit_title(const Json& one_case) {
  return text(one_case, "limits.kind") == "bound" ? "Limit" : "Roofline";
}

std::string proof_mark(const Json& row, bool shortened) {
  const Json& proof = at(row, "proof");
  if (!proof.is_object() || text(proof, "verdict") == "none") return "none";
  auto mark = fmt::format(fmt::runtime(shortened ? "{} obs, {} rep" : "{} observed, {} reported"),
                          count(number(proof, "observed").value_or(0)), count(number(proof, "reported").value_or(0)));
  if (text(proof, "verdict") == "equal_looser") mark += shortened ? ", loose" : ", looser";
  if (flag(proof, "weak")) mark += ", weak";
  return mark;
}

std::string ratio_with_interval(const Json& estimate, const Glyphs& glyphs) {
  const auto value = number(estimate, "value"), low = number(estimate, "low"), high = number(estimate, "high");
  if (!value) return glyphs.missing;
  return ratio(*value) + (low && high ? " (" + ratio(*low) + glyphs.range + ratio(*high) + ")" : "");
}

std::string verdict_words(std::string_view verdict) {
  const bool is_known = verdict == "faster" || verdict == "slower" || verdict == "same" || verdict == "inconclusive";
  return is_known ? std::string(verdict) : "";
}

FirstScreen first_screen(const Json& run, const Json& one_case, const Glyphs& glyphs) {
  FirstScreen screen;
  const Json summary = at(one_case, "headline").is_object() ? at(one_case, "headline") : headline(one_case);
  screen.id = text(one_case, "id");
  screen.verdict = text(summary, "verdict");
  screen.sentence = text(summary, "sentence");
  screen.what = what_was_run(run, one_case, glyphs);
  for (const Json* row : sorted_rows(one_case)) {
    if (!is_measured(*row)) {
      add_empty(screen.without, *row);
      continue;
    }
    screen.levels.push_back(level_line(*row, glyphs));
    auto& line = screen.levels.back();
    line.recommended = screen.verdict == "move" && line.name == text(summary, "level");
    screen.has_tuned = screen.has_tuned || !line.tuned.empty();
    screen.has_device_memory = screen.has_device_memory || number(*row, "memory.device_peak_bytes").has_value();
  }
  std::stable_partition(screen.without.begin(), screen.without.end(),
                        [](const EmptyLine& line) { return !line.not_run; });
  screen.about = about(screen.levels);
  screen.proof_note = proof_note(run, one_case, screen.levels);
  screen.state_note = state_note(screen.without);
  for (const auto& warning : list(run, "warnings"))
    if (text(warning, "id") == analysis::warnings::kOthersAgree && concerns(warning, one_case))
      screen.doubt = fmt::format("{} ({})", text(warning, "what"), text(warning, "advice"));
  screen.limit = limit_line(one_case, screen.levels);
  screen.limit_title = limit_title(one_case);
  screen.trust = trust_line(run, one_case, glyphs);
  screen.next = text(one_case, "next_command");
  return screen;
}

}  // namespace strata::report
