// SPDX-License-Identifier: Apache-2.0
#include "report/sentence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "report/environments.hpp"
#include "report/format.hpp"

namespace strata::report {
namespace {

// The median stands where there is no estimate: no round had undisturbed blocks.
std::optional<double> ms_of(const Json& row) {
  const auto ms = number(row, "end_to_end_ms.estimate");
  return ms ? ms : number(row, "end_to_end_ms.median");
}

std::string time_of(const Json& row) {
  const auto ms = ms_of(row);
  return ms ? duration(*ms) : "unknown time";
}

// What one iteration is, behind its time: "87.4 ms a training step".
std::string of_what(const Json& one_case) {
  return is_training(one_case) ? " a training step" : "";
}

double ratio_of(const Json& row) {
  return number(row, "ratio.value").value_or(0);
}

bool is_proven(const Json& row) {
  const auto verdict = text(row, "proof.verdict");
  return verdict == "equal" || verdict == "equal_looser";
}

bool is_faster(const Json& row) {
  return text(row, "ratio.verdict") == "faster" && is_proven(row);
}

// An interval so wide, or an effect so large, says that the run saw nothing; its numbers would only mislead.
constexpr double kAbsurdSpan = 10;

bool absurd_interval(const Json& row) {
  const auto low = number(row, "ratio.low"), high = number(row, "ratio.high");
  return low && high && !(*high < kAbsurdSpan * *low);
}

// "0.95 to 1.03", or "" where the row has no interval that says anything.
std::string interval_of(const Json& row) {
  const auto low = number(row, "ratio.low"), high = number(row, "ratio.high");
  return low && high && !absurd_interval(row) ? ratio(*low) + " to " + ratio(*high) : "";
}

std::string memory_clause(const Json& row, const Json& reference) {
  const auto here = number(row, "memory.peak_private_bytes"), there = number(reference, "memory.peak_private_bytes");
  if (!here || !there) return "";
  const double change = *here - *there;
  if (std::abs(change) < std::max(1e6, 0.02 * *there))
    return fmt::format(", with about the same memory ({})", size(*here));
  return fmt::format(", with {} {} memory ({})", size(std::abs(change)), change < 0 ? "less" : "more", size(*here));
}

std::string break_even_clause(const Json& row, bool training) {
  const auto iterations = number(row, "break_even.iterations");
  if (!iterations || flag(row, "break_even.never")) return "";
  if (*iterations < 1) return "; it starts no slower";
  const auto ms = number(row, "end_to_end_ms.estimate");
  const auto time = ms ? fmt::format(" ({})", duration(*iterations * *ms)) : "";
  return fmt::format("; its start pays back after {} {}{}", count(std::ceil(*iterations)),
                     training ? "training steps" : "iterations", time);
}

std::string move_sentence(const Json& one_case, const Json& best, const Json* inside, const Json& reference) {
  const auto interval = interval_of(best);
  auto sentence =
      fmt::format("Move to {}{}: {} times as fast as {}{}, {}{} instead of {}", level_name(best),
                  flag(best, "peer") ? " (a peer)" : "", ratio(ratio_of(best)), level_name(reference),
                  interval.empty() ? "" : " (" + interval + ")", time_of(best), of_what(one_case), time_of(reference));
  sentence += memory_clause(best, reference) + break_even_clause(best, is_training(one_case));
  if (text(best, "proof.verdict") == "equal_looser") sentence += "; its numerics are looser";
  if (flag(best, "proof.weak")) sentence += "; its proof is weak";
  if (inside)
    sentence +=
        fmt::format("; the best that is no peer, {}, reaches {}", level_name(*inside), ratio(ratio_of(*inside)));
  return sentence + ".";
}

std::string stay_sentence(const Json& one_case, const std::vector<const Json*>& others, const Json& nearest,
                          const Json& reference) {
  const auto python = text(reference, "language") == "python" && !flag(reference, "peer");
  const auto name = level_name(reference);
  const auto memory = number(reference, "memory.peak_private_bytes");
  const auto costs = time_of(reference) + of_what(one_case) + (memory ? ", " + size(*memory) : "");
  const auto who =
      others.size() == 1 ? level_name(nearest) + " is not" : fmt::format("none of {} levels is", others.size());
  auto sentence =
      fmt::format("Stay {}: {} faster than {} ({})", python ? "in Python" : "with " + name, who, name, costs);
  const auto subject = others.size() == 1 ? std::string("it") : "the nearest, " + level_name(nearest) + ",";
  const auto within = number(nearest, "ratio.same_within_percent");
  if (text(nearest, "ratio.verdict") == "same" && within)
    return sentence + fmt::format("; {} is the same within {}.", subject, percent(*within));
  const auto interval = interval_of(nearest);
  return sentence + fmt::format("; {} is {} times as fast{}.", subject, ratio(ratio_of(nearest)),
                                interval.empty() ? "" : " (" + interval + ")");
}

std::string undecided_sentence(const Json& one_case, const Json& open, const Json& reference) {
  auto sees = number(open, "ratio.smallest_visible_percent");
  if (!sees) sees = number(one_case, "trust.smallest_visible_percent");
  const auto costs = fmt::format("{} ({}{})", level_name(reference), time_of(reference), of_what(one_case));
  std::string sentence;
  if (absurd_interval(open) || (sees && *sees > too_noisy_percent)) {
    sentence = fmt::format("Undecided: this run is too noisy to compare; no level is proven faster than {}", costs);
  } else {
    const auto interval = interval_of(open);
    sentence =
        fmt::format("Undecided: no level is proven faster than {}; {} is {} times as fast{}", costs, level_name(open),
                    ratio(ratio_of(open)), interval.empty() ? "" : ", anything from " + interval);
    if (sees) sentence += fmt::format(", and this run cannot see effects below {}", percent(*sees));
  }
  if (const auto minutes = number(open, "ratio.resolve.minutes"))
    sentence += fmt::format("; {} of measuring would resolve it", duration(*minutes * 60e3));
  return sentence + ".";
}

// The level that used least processor time where that is proven to be less than the reference's.
std::string processor_time_clause(const Json& one_case, const Json& reference) {
  const Json* best = nullptr;
  const auto low_of = [](const Json& row) { return number(row, "ratio.by_processor_time.low").value_or(0); };
  for (const auto& row : list(one_case, "rows"))
    if (is_measured(row) && is_proven(row) && !flag(row, "harness") &&
        low_of(row) > std::max(1.0, best ? low_of(*best) : 0))
      best = &row;
  const auto high = best ? number(*best, "ratio.by_processor_time.high") : std::nullopt;
  if (!high) return "";
  return fmt::format("; by processor time {} is {} to {} times as fast as {}", level_name(*best), ratio(low_of(*best)),
                     ratio(*high), level_name(reference));
}

// Others had the cores that the threads need: whatever was measured says nothing of the levels.
std::string unreliable_sentence(const Json& one_case, const Json& reference) {
  const Json& trust = at(one_case, "trust");
  return fmt::format("Not reliable: {}{}; measure {}on an idle machine.", who_had_the_cores(trust),
                     processor_time_clause(one_case, reference),
                     flag(trust, "one_thread_fits") ? "with --threads 1 or " : "");
}

Json result(const char* verdict, const Json* row, std::string sentence) {
  return {{"verdict", verdict}, {"level", row ? Json(level_name(*row)) : Json()}, {"sentence", std::move(sentence)}};
}

// Levels have times, but none in a round with the reference that nothing disturbed.
std::string too_few_rounds(const Json& one_case) {
  const auto blocks = number(one_case, "trust.blocks"), disturbed = number(one_case, "trust.disturbed_blocks");
  const auto counted = blocks && disturbed && *disturbed > 0
                           ? fmt::format(" ({} of {} blocks were disturbed)", count(*disturbed), count(*blocks))
                           : std::string();
  return fmt::format("No comparison: too few undisturbed rounds{}; the times below are not comparable.", counted);
}

// How many rows beside the reference there are, and how many of them have a time.
struct Others {
  std::size_t requested = 0, timed = 0;
};

// Why no comparison can be made.
Json no_data(const Json& one_case, const Json* reference, const Others& others) {
  if (!reference) {
    const auto name = text(one_case, "reference_level");
    return result("no_data", nullptr,
                  fmt::format("No comparison: {}, the reference, was not run.", name.empty() ? "eager" : name));
  }
  if (!is_measured(*reference)) {
    auto reason = text(*reference, "reason_short");
    if (reason.empty()) reason = text(*reference, "reason");
    return result("no_data", nullptr,
                  fmt::format("No comparison: {}, the reference, has no number ({}{}).", level_name(*reference),
                              text(*reference, "state"), reason.empty() ? "" : ": " + first_sentence(reason)));
  }
  if (others.timed > 0) return result("no_data", nullptr, too_few_rounds(one_case));
  const auto why = others.requested == 0   ? std::string("no other level was run")
                   : others.requested == 1 ? std::string("the other level has no number")
                                           : fmt::format("none of the {} other levels has a number", others.requested);
  const auto takes = ms_of(*reference) ? fmt::format("{} takes {}{}, and ", level_name(*reference), time_of(*reference),
                                                     of_what(one_case))
                                       : std::string();
  return result("no_data", nullptr, fmt::format("No comparison: {}{}.", takes, why));
}

// How a level in one environment stands to itself in another, before anything else. Not where nothing can be compared.
std::string across_words(const Json& one_case, const Json& judgement) {
  const auto words = text(judgement, "verdict") == "not_reliable" ? "" : across_sentence(one_case);
  return words.empty() ? "" : words + " ";
}

// "eager has no number (unequal: ...); compared with libtorch instead. "
std::string instead_words(const Json& one_case) {
  const Json& original = at(one_case, "reference_instead_of");
  if (!original.is_object()) return "";
  const auto state = spaced(text(original, "state"));
  const auto reason = text(original, "reason");
  return fmt::format("{} has no number ({}{}); compared with {} instead. ", text(original, "level"), state,
                     reason.empty() ? "" : ": " + first_sentence(reason), text(one_case, "reference_level"));
}

Json judge(const Json& one_case) {
  const Json* reference = reference_row(one_case);
  Others counts;
  std::vector<const Json*> others;
  const Json *best = nullptr, *inside = nullptr, *nearest = nullptr, *open = nullptr;
  const auto keep_higher = [](const Json*& best_row, const Json& row) {
    if (!best_row || ratio_of(row) > ratio_of(*best_row)) best_row = &row;
  };
  for (const auto& row : list(one_case, "rows")) {
    if (&row == reference || flag(row, "harness")) continue;
    ++counts.requested;
    if (!is_measured(row)) continue;
    ++counts.timed;
    if (!number(row, "ratio.value")) continue;
    others.push_back(&row);
    keep_higher(nearest, row);
    const auto verdict = text(row, "ratio.verdict");
    if (is_faster(row)) {
      keep_higher(best, row);
      if (!flag(row, "peer")) keep_higher(inside, row);
    } else if (verdict != "slower" && verdict != "same") {
      keep_higher(open, row);
    }
  }
  if (reference && is_measured(*reference) && at(one_case, "trust.reliable") == false)
    return result("not_reliable", nullptr, unreliable_sentence(one_case, *reference));
  if (!reference || !is_measured(*reference) || others.empty()) return no_data(one_case, reference, counts);
  if (best)
    return result("move", best, move_sentence(one_case, *best, flag(*best, "peer") ? inside : nullptr, *reference));
  if (open) return result("undecided", nullptr, undecided_sentence(one_case, *open, *reference));
  return result("stay", reference, stay_sentence(one_case, others, *nearest, *reference));
}

}  // namespace

Json headline(const Json& one_case) {
  Json judgement = judge(one_case);
  judgement["sentence"] = across_words(one_case, judgement) + instead_words(one_case) + judgement.value("sentence", "");
  return judgement;
}

Json load_json(const store::Case& run_case) {
  const auto& load = run_case.trust.load;
  const auto percent = [](std::optional<double> share) { return share ? Json(*share * 100) : Json(); };
  return {{"others_begin_percent", percent(load.begin)},
          {"others_percent", percent(load.others)},
          {"host_percent", percent(load.steal)},
          {"other_run", load.other_run ? Json(*load.other_run) : Json()}};
}

std::string who_had_the_cores(const Json& load) {
  const double others =
      std::max(number(load, "others_begin_percent").value_or(0), number(load, "others_percent").value_or(0));
  const double host = number(load, "host_percent").value_or(0);
  auto words = host > others ? fmt::format("the host gives {:.0f}% of this machine to others", host)
                             : fmt::format("other programs use {:.0f}% of this machine", others);
  if (const auto running = number(load, "other_run"))
    words += *running > 0 ? fmt::format(", another strata run is measuring (pid {:.0f})", *running)
                          : ", another strata run is measuring";
  return words;
}

std::string brief_verdict(const Json& one_case) {
  const auto verdict = text(one_case, "headline.verdict"), level = text(one_case, "headline.level");
  if (verdict != "move") return verdict == "not_reliable" ? "not reliable" : verdict == "no_data" ? "no data" : verdict;
  for (const auto& row : list(one_case, "rows"))
    if (level_name(row) == level)
      if (const auto speedup = number(row, at(row, "tuned").is_object() ? "tuned.ratio.value" : "ratio.value"))
        return fmt::format("{} {}x", level, ratio(*speedup));
  return level;
}

Json tuned_headline(const Json& one_case) {
  Json best = one_case;
  best["rows"] = Json::array();
  for (const auto& row : list(one_case, "rows")) {
    const bool chosen = at(row, "tuned").is_object();
    if (is_measured(row) && !chosen) continue;  // a default that its own variant beat, or a harness
    best["rows"].push_back(row);
    auto& entry = best["rows"].back();
    entry["reference"] = chosen && text(row, "tuned.ratio.verdict") == "reference";
    if (!chosen) continue;
    entry["ratio"] = at(row, "tuned.ratio");
    entry["break_even"] = at(row, "tuned.break_even");
    if (flag(entry, "reference")) best["reference_level"] = level_name(row);
  }
  Json judgement = judge(best);
  judgement["sentence"] = across_words(one_case, judgement) + instead_words(one_case) +
                          "Tuned against tuned: " + judgement.value("sentence", "");
  return judgement;
}

}  // namespace strata::report
