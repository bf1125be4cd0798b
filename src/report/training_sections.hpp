// SPDX-License-Identifier: Apache-2.0
// The sections of a training's report, and what it says in words, a file each.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/learning_verdict.hpp"
#include "core/case.hpp"
#include "report/document.hpp"
#include "report/trained_level.hpp"

namespace strata::report {

// training_summary.cpp: whether it came to its end, how well the levels learned, how fast they went.

// The epochs of its longest repeat, of all levels: fewer than the case asks for where it was cut off in the first one.
int epochs_done(const std::vector<TrainedLevel>& levels);

// Whether its times can be told, by analysis::is_reliable.
bool is_reliable(const std::vector<TrainedLevel>& levels, const store::Case& run_case, const store::Run& run);

// "Interrupted in repeat 1 of 2 after epoch 1 of 12; ./strata resume RUN goes on. "; empty: it came to its end.
std::string cut_off_words(const std::vector<TrainedLevel>& levels, const store::Case& run_case, const store::Run& run);

// What makes a verdict say nothing: no level found more of the test images than naming the commonest class does.
// Empty: one did, or it is not known.
std::string chance_words(const std::vector<TrainedLevel>& levels, const store::Case& run_case);

// One paragraph, without those words.
std::string training_summary(const std::vector<TrainedLevel>& levels, const store::Case& run_case,
                             const store::Run& run);

// training_verdict.cpp: does a level learn as the reference does (analysis/learning_verdict.hpp)?

// Absolute, and fixed before the training.
struct Margins {
  double accuracy = 0.01;  // a share: 0.01 is one percentage point
  double loss = 0.05;
};

using analysis::Learner;

// `test_images`: that a score is over; a difference of one of them is the least that is taken for one. Nothing in it
// where there is no level beside the reference, or no repeat that both ended.
document::Section verdicts(const Learner& reference, const std::vector<Learner>& others, const Margins& margins,
                           double test_images);

// The same in a sentence, of accuracy; empty: no verdict.
std::string verdict_words(const Learner& reference, const std::vector<Learner>& others, const Margins& margins,
                          double test_images);

// --rule mlperf: MLPerf's check of the epochs to a target (stats/convergence.hpp), in both directions. `target`: a
// share of the test images. Says so where the reference itself does not converge.
document::Section mlperf_rule(const analysis::Learner& reference, const std::vector<analysis::Learner>& others,
                              double target);

// What a level costs from its code to its tests: lines, preparing, starting, an epoch, a test of all images, shipping.
// A table by level, and one of how far the reference is behind the best in each time. Measured levels alone; nothing in
// it where there is none.
document::Section life_cycle(const std::vector<TrainedLevel>& levels, const store::Case& run_case,
                             bool reliable = true);

// How large activations and gradients are in each layer over a training, and where they vanish or explode. Maps are of
// the first repeat of the first measured level that has sizes; sentences of all. nullopt: nobody looked.
std::optional<document::Section> layers_section(const std::vector<TrainedLevel>& levels, const core::Recipe& recipe);

// training_init.cpp: trainings of one network that begin with several schemes of initialisation (--sweep-init), at
// which levels each learns, and where its signal vanishes or explodes.
struct SchemeTraining {
  const store::Case* run_case = nullptr;
  std::vector<TrainedLevel> levels;

  const std::string& scheme() const { return run_case->question.recipe->training->init; }
};

// A table of scheme by level, and one with layer and step.
document::Section initialisations(const std::vector<SchemeTraining>& trainings);

// The same in a sentence.
std::string initialisation_words(const std::vector<SchemeTraining>& trainings);

}  // namespace strata::report
