// SPDX-License-Identifier: Apache-2.0
// The section of a sweep that looked for a batch: what it found for each level, and the curve it went along.
#pragma once

#include <string>

#include "report/document.hpp"
#include "store/record.hpp"

namespace strata::report {

// Nothing in it where the run looked for none.
document::Section best_batch(const store::Run& run);
std::string best_batch_words(const store::Run& run);  // the same in a sentence

}  // namespace strata::report
