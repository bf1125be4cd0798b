// SPDX-License-Identifier: Apache-2.0
// What a training came to, in sentences: whether it came to its end, how well the levels learned, how fast they went.
#pragma once

#include <string>
#include <vector>

#include "report/trained_level.hpp"

namespace strata::report {

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

}  // namespace strata::report
