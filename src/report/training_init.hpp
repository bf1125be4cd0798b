// SPDX-License-Identifier: Apache-2.0
// Trainings of one network that begin with several schemes of initialisation (--sweep-init): at which levels each
// learns, and where its signal vanishes or explodes.
#pragma once

#include <string>
#include <vector>

#include "report/document.hpp"
#include "report/trained_level.hpp"

namespace strata::report {

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
