// SPDX-License-Identifier: Apache-2.0
#include "report/sentence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/case_result.hpp"
#include "analysis/headline.hpp"
#include "analysis/warnings.hpp"
#include "report/environments.hpp"
#include "report/format.hpp"
#include "stats/half_width.hpp"

namespace strata::report {
using analysis::CaseResult;
using analysis::Headline;
using analysis::HeadlineVerdict;
using analysis::Judgement;
using analysis::OptionalNumber;
using analysis::Ratio;
using analysis::RatioVerdict;
using analysis::RowResult;
namespace {

// The median stands where there is no estimate: no round had undisturbed blocks.
OptionalNumber ms_of(const RowResult& row) {
  const auto ms = row.estimate_ms();
  return ms || !row.end_to_end_ms ? ms : row.end_to_end_ms->median;
}

std::string time_of(const RowResult& row) {
  const auto ms = ms_of(row);
  return ms ? duration(*ms) : "unknown time";
}

// What one iteration is, behind its time: "87.4 ms a training step".
std::string of_what(const CaseResult& one_case) {
  return one_case.is_training() ? " a training step" : "";
}

std::string speedup_of(const RowResult& row) {
  return ratio(row.ratio->value.value_or(0));
}

// An interval so wide, or an effect so large, says that the run saw nothing; its numbers would only mislead.
constexpr double kAbsurdSpan = 10;

bool absurd_interval(const Ratio& speedup) {
  return speedup.low && speedup.high && !(*speedup.high < kAbsurdSpan * *speedup.low);
}

// "0.95 to 1.03", or "" where the row has no interval that says anything.
std::string interval_of(const RowResult& row) {
  const auto low = row.ratio->low, high = row.ratio->high;
  return low && high && !absurd_interval(*row.ratio) ? ratio(*low) + " to " + ratio(*high) : "";
}

std::string memory_clause(const RowResult& row, const RowResult& reference) {
  const auto here = row.peak_private_bytes(), there = reference.peak_private_bytes();
  if (!here || !there) return "";
  const double change = *here - *there;
  if (std::abs(change) < std::max(1e6, 0.02 * *there))
    return fmt::format(", with about the same memory ({})", size(*here));
  return fmt::format(", with {} {} memory ({})", size(std::abs(change)), change < 0 ? "less" : "more", size(*here));
}

std::string break_even_clause(const RowResult& row, bool training) {
  const auto iterations = row.break_even ? row.break_even->iterations : std::nullopt;
  if (!iterations || row.break_even->never) return "";
  if (*iterations < 1) return "; it starts no slower";
  const auto ms = row.estimate_ms();
  const auto time = ms ? fmt::format(" ({})", duration(*iterations * *ms)) : "";
  return fmt::format("; its start pays back after {} {}{}", count(std::ceil(*iterations)),
                     training ? "training steps" : "iterations", time);
}

std::string move_sentence(const CaseResult& one_case, const Judgement& judgement) {
  const auto &best = *judgement.best, &reference = *judgement.reference;
  const auto interval = interval_of(best);
  auto sentence =
      fmt::format("Move to {}{}: {} times as fast as {}{}, {}{} instead of {}", best.name(),
                  best.peer ? " (a peer)" : "", speedup_of(best), reference.name(),
                  interval.empty() ? "" : " (" + interval + ")", time_of(best), of_what(one_case), time_of(reference));
  sentence += memory_clause(best, reference) + break_even_clause(best, one_case.is_training());
  if (best.proof->verdict == "equal_looser") sentence += "; its numerics are looser";
  if (best.proof->weak) sentence += "; its proof is weak";
  if (const auto* inside = judgement.inside; best.peer && inside)
    sentence += fmt::format("; the best that is no peer, {}, reaches {}", inside->name(), speedup_of(*inside));
  return sentence + ".";
}

std::string stay_sentence(const CaseResult& one_case, const Judgement& judgement) {
  const auto &nearest = *judgement.nearest, &reference = *judgement.reference;
  const auto python = reference.language == "python" && !reference.peer;
  const auto name = reference.name();
  const auto memory = reference.peak_private_bytes();
  const auto costs = time_of(reference) + of_what(one_case) + (memory ? ", " + size(*memory) : "");
  const bool alone = judgement.compared == 1;
  const auto who = alone ? nearest.name() + " is not" : fmt::format("none of {} levels is", judgement.compared);
  auto sentence =
      fmt::format("Stay {}: {} faster than {} ({})", python ? "in Python" : "with " + name, who, name, costs);
  const auto subject = alone ? std::string("it") : "the nearest, " + nearest.name() + ",";
  const auto within = nearest.ratio->same_within_percent;
  if (nearest.ratio->verdict == RatioVerdict::same && within)
    return sentence + fmt::format("; {} is the same within {}.", subject, percent(*within));
  const auto interval = interval_of(nearest);
  return sentence + fmt::format("; {} is {} times as fast{}.", subject, speedup_of(nearest),
                                interval.empty() ? "" : " (" + interval + ")");
}

std::string undecided_sentence(const CaseResult& one_case, const RowResult& open, const RowResult& reference) {
  auto sees = open.ratio->smallest_visible_percent;
  if (!sees) sees = one_case.trust.smallest_visible_percent;
  const auto costs = fmt::format("{} ({}{})", reference.name(), time_of(reference), of_what(one_case));
  std::string sentence;
  if (absurd_interval(*open.ratio) || (sees && *sees > too_noisy_percent)) {
    sentence = fmt::format("Undecided: this run is too noisy to compare; no level is proven faster than {}", costs);
  } else {
    const auto interval = interval_of(open);
    sentence = fmt::format("Undecided: no level is proven faster than {}; {} is {} times as fast{}", costs, open.name(),
                           speedup_of(open), interval.empty() ? "" : ", anything from " + interval);
    if (sees) sentence += fmt::format(", and this run cannot see effects below {}", percent(*sees));
  }
  if (const auto& resolve = open.ratio->resolve)
    sentence += fmt::format("; {} of measuring would resolve it", duration(resolve->minutes * 60e3));
  return sentence + ".";
}

std::string processor_time_clause(const RowResult* thriftiest, const RowResult& reference) {
  if (!thriftiest) return "";
  const auto& saving = *thriftiest->ratio->by_processor_time;
  if (!saving.high) return "";
  return fmt::format("; by processor time {} is {} to {} times as fast as {}", thriftiest->name(), ratio(*saving.low),
                     ratio(*saving.high), reference.name());
}

// Others had the cores that the threads need: whatever was measured says nothing of the levels.
std::string unreliable_sentence(const analysis::TrustFacts& trust, const Judgement& judgement) {
  return fmt::format("Not reliable: {}{}; measure {}on an idle machine.", who_had_the_cores(trust),
                     processor_time_clause(judgement.thriftiest, *judgement.reference),
                     trust.one_thread_fits ? "with --threads 1 or " : "");
}

// Levels have times, but none in a round with the reference that nothing disturbed.
std::string too_few_rounds(const analysis::TrustFacts& trust) {
  const auto blocks = trust.blocks, disturbed = trust.disturbed_blocks;
  const auto counted = blocks && disturbed && *disturbed > 0
                           ? fmt::format(" ({} of {} blocks were disturbed)", count(*disturbed), count(*blocks))
                           : std::string();
  return fmt::format("No comparison: too few undisturbed rounds{}; the times below are not comparable.", counted);
}

// Why no comparison can be made.
std::string no_data_sentence(const CaseResult& one_case, const Judgement& judgement) {
  const auto* reference = judgement.reference;
  if (!reference) {
    const auto& name = one_case.reference_level;
    return fmt::format("No comparison: {}, the reference, was not run.", name.empty() ? "eager" : name);
  }
  if (!reference->is_measured()) {
    const auto& reason = reference->reason_short.empty() ? reference->reason : reference->reason_short;
    return fmt::format("No comparison: {}, the reference, has no number ({}{}).", reference->name(),
                       to_string(reference->state), reason.empty() ? "" : ": " + first_sentence(reason));
  }
  if (judgement.timed > 0) return too_few_rounds(one_case.trust);
  const auto why = judgement.requested == 0 ? std::string("no other level was run")
                   : judgement.requested == 1
                       ? std::string("the other level has no number")
                       : fmt::format("none of the {} other levels has a number", judgement.requested);
  const auto takes = ms_of(*reference)
                         ? fmt::format("{} takes {}{}, and ", reference->name(), time_of(*reference), of_what(one_case))
                         : std::string();
  return fmt::format("No comparison: {}{}.", takes, why);
}

std::string sentence_of(const CaseResult& one_case, const Judgement& judgement) {
  switch (judgement.verdict) {
    case HeadlineVerdict::move:
      return move_sentence(one_case, judgement);
    case HeadlineVerdict::stay:
      return stay_sentence(one_case, judgement);
    case HeadlineVerdict::undecided:
      return undecided_sentence(one_case, *judgement.open, *judgement.reference);
    case HeadlineVerdict::not_reliable:
      return unreliable_sentence(one_case.trust, judgement);
    case HeadlineVerdict::no_data:
    case HeadlineVerdict::preliminary:
      break;
  }
  return no_data_sentence(one_case, judgement);
}

// How a level in one environment stands to itself in another, before anything else. Not where nothing can be compared.
std::string across_words(const CaseResult& one_case, HeadlineVerdict verdict) {
  const auto words = verdict == HeadlineVerdict::not_reliable ? "" : across_sentence(one_case);
  return words.empty() ? "" : words + " ";
}

// "eager has no number (unequal: ...); compared with libtorch instead. "
std::string instead_words(const CaseResult& one_case) {
  const auto& original = one_case.reference_instead_of;
  if (!original) return "";
  return fmt::format("{} has no number ({}{}); compared with {} instead. ", original->level, spaced(original->state),
                     original->reason.empty() ? "" : ": " + first_sentence(original->reason), one_case.reference_level);
}

// `judged`: with the rows that are compared. `what`: that they are, where it is not each level as it comes.
Headline headline_of(const CaseResult& one_case, const CaseResult& judged, const char* what) {
  const auto judgement = analysis::judge_case(judged);
  const auto* recommended = judgement.recommended();
  return {.verdict = judgement.verdict,
          .level = recommended ? recommended->name() : "",
          .sentence = across_words(one_case, judgement.verdict) + instead_words(one_case) + what +
                      sentence_of(judged, judgement)};
}

}  // namespace

Headline headline(const CaseResult& one_case) {
  return headline_of(one_case, one_case, "");
}

Headline tuned_headline(const CaseResult& one_case) {
  return headline_of(one_case, analysis::at_their_best(one_case), "Tuned against tuned: ");
}

Headline preliminary_headline(const CaseResult& one_case, int planned) {
  double widest = 0;  // in percent
  for (const auto& row : one_case.rows)
    if (row.ratio && row.ratio->value && row.ratio->high)
      widest = std::max(widest, 100 * (*row.ratio->high / *row.ratio->value - 1));
  return {.verdict = HeadlineVerdict::preliminary,
          .level = "",
          .sentence = fmt::format("Preliminary, {} of {} restarts: differences below {} say nothing yet; levels are "
                                  "judged from restart {} on.",
                                  one_case.trust.restarts.value_or(0), planned, percent(std::round(widest)),
                                  stats::fewest_with_scatter)};
}

std::string who_had_the_cores(const analysis::TrustFacts& trust) {
  const double others = std::max(trust.others_begin_percent.value_or(0), trust.others_percent.value_or(0));
  const double host = trust.host_percent.value_or(0);
  auto words = host > others ? fmt::format("the host gives {:.0f}% of this machine to others", host)
                             : fmt::format("other programs use {:.0f}% of this machine", others);
  if (trust.other_run) words += ", " + analysis::warnings::another_run(*trust.other_run);
  return words;
}

std::string who_had_the_cores(const store::LoadFacts& load) {
  analysis::TrustFacts trust;
  analysis::add_load(trust, load);
  return who_had_the_cores(trust);
}

std::string brief_verdict(const CaseResult& one_case) {
  if (!one_case.headline) return "";
  const auto& [verdict, level, sentence] = *one_case.headline;
  if (verdict != HeadlineVerdict::move) return spaced(to_string(verdict));
  for (const auto& row : one_case.rows) {
    if (row.name() != level) continue;
    const auto& compared = row.tuned ? row.tuned->ratio : row.ratio;
    if (compared && compared->value) return fmt::format("{} {}x", level, ratio(*compared->value));
  }
  return level;
}

}  // namespace strata::report
