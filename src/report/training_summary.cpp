// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "analysis/reliability.hpp"
#include "analysis/signal_fate.hpp"
#include "report/sentence.hpp"
#include "report/shards.hpp"
#include "report/training_sections.hpp"
#include "store/run_state.hpp"

namespace strata::report {
namespace {

using analysis::Spread;

std::string range_in_words(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  if (*high - *low < 5e-5) return fmt::format("{:.2f}%", 100 * *low);
  return fmt::format("{:.2f}% to {:.2f}%", 100 * *low, 100 * *high);
}

struct Fastest {
  std::string level;
  Spread speedup;
};

// Of those that are no reference; nullopt: none has a time beside the reference's.
std::optional<Fastest> fastest(const std::vector<TrainedLevel>& levels, const TrainedLevel& reference,
                               const std::string& by) {
  std::optional<Fastest> best;
  for (const auto& level : levels) {
    if (!level.measured()) continue;
    const auto ratio = analysis::speedup(level.learning, reference.learning, by);
    if (ratio && (!best || ratio->mean > best->speedup.mean)) best = Fastest{level.row->name(), *ratio};
  }
  return best && best->level != reference.row->name() ? best : std::nullopt;
}

std::string words_of(const Fastest& best, const std::string& reference) {
  const auto& [mean, low, high, count] = best.speedup;
  return fmt::format("{} took its steps {:.2f} times as fast as {}{}", best.level, mean, reference,
                     count > 1 ? fmt::format(" ({:.2f} to {:.2f} in {} repeats)", low, high, count) : std::string());
}

std::string speed_words(const std::vector<TrainedLevel>& levels, const store::Case& run_case, const store::Run& run) {
  const auto* reference = reference_of(levels, run_case);
  if (!reference) return {};
  const bool reliable = is_reliable(levels, run_case, run);
  const auto best = fastest(levels, *reference, reliable ? "step_time" : analysis::by_processor_time);
  if (reliable) return best ? "; " + words_of(*best, run_case.reference_level) : std::string();
  auto words = fmt::format(". Times are not reliable: {}", who_had_the_cores(run_case.trust.load));
  if (best) words += fmt::format("; by processor time {}", words_of(*best, run_case.reference_level));
  return words;
}

}  // namespace

int epochs_done(const std::vector<TrainedLevel>& levels) {
  int epochs = 0;
  for (const auto& level : levels)
    if (level.measured()) epochs = std::max(epochs, level.learning.epochs());
  return epochs;
}

bool is_reliable(const std::vector<TrainedLevel>& levels, const store::Case& run_case, const store::Run& run) {
  std::vector<const analysis::Learning*> all;
  for (const auto& level : levels) all.push_back(&level.learning);
  return analysis::is_reliable(run, run_case, all);
}

std::string cut_off_words(const std::vector<TrainedLevel>& levels, const store::Case& run_case, const store::Run& run) {
  if (run_case.finished) return {};
  const auto state = store::state_of(run);
  auto words = std::string(state == store::RunState::running ? "still running" : "interrupted");
  int repeat = -1, epoch = 0;  // the furthest that any level came
  for (const auto& level : levels)
    for (const int one : level.learning.repeats())
      if (const auto& steps = level.learning.series("step_time", one); !steps.empty())
        std::tie(repeat, epoch) = std::max(std::tuple(repeat, epoch), std::tuple(one, steps.rbegin()->first));
  if (repeat < 0)
    words += " before the first epoch was over";
  else
    words += fmt::format(" in repeat {} of {} after epoch {} of {}", repeat + 1,
                         std::max(repeat + 1, run.settings.training.repeats.value_or(1)), epoch,
                         run_case.question.recipe->training->epochs);
  words[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(words[0])));
  return state == store::RunState::running ? words + ". " : fmt::format("{}; {}. ", words, how_to_go_on(run));
}

std::string chance_words(const std::vector<TrainedLevel>& levels, const store::Case& run_case) {
  const auto& trust = run_case.trust;
  if (!trust.commonest_class || !trust.test_images) return {};
  const double above = analysis::above_chance(*trust.commonest_class, static_cast<double>(*trust.test_images));
  for (const auto& level : levels)
    if (const auto last = level.learning.last("test_accuracy"); level.measured() && last && last->high > above)
      return {};
  return fmt::format(
      " No level learned anything: none is above the {:.2f}% that naming the commonest class alone may reach, so that "
      "\"equivalent\" says nothing of how they learn.",
      100 * above);
}

std::string training_summary(const std::vector<TrainedLevel>& levels, const store::Case& run_case,
                             const store::Run& run) {
  std::vector<double> accuracies;
  for (const auto& level : levels)
    if (level.measured())
      if (const auto last = level.learning.last("test_accuracy")) accuracies.push_back(last->mean);
  if (accuracies.empty()) return "No level has an epoch behind it.";
  const auto& training = *run_case.question.recipe->training;
  const int epochs = std::min(training.epochs, epochs_done(levels));
  const bool one = accuracies.size() == 1;
  auto text = run_case.finished ? fmt::format("After {} epoch{} on {} {} at a test accuracy of {}", epochs,
                                              epochs == 1 ? "" : "s", run_case.question.data,
                                              one ? "the level ends" : "the levels end", range_in_words(accuracies))
                                : fmt::format("So far, on {}, {} at a test accuracy of {}", run_case.question.data,
                                              one ? "the level is" : "the levels are", range_in_words(accuracies));
  return text + speed_words(levels, run_case, run) + ".";
}

}  // namespace strata::report
