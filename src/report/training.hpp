// SPDX-License-Identifier: Apache-2.0
// A stored training as a document: how well and how fast each level learned.
#pragma once

#include "report/document.hpp"
#include "store/store.hpp"

namespace strata::report {

// Whether a run is one of `strata train`.
bool is_training(const store::Run& run);

// Means over repeats with their range; accuracy and loss against epochs and against time; phases; what was proven.
// Error: the store's.
Result<document::Document> training_document(const store::Run& run, const store::Store& store);

}  // namespace strata::report
