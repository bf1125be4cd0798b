// SPDX-License-Identifier: Apache-2.0
// Of a suite's comparisons: which network each level ran, and why it did not run the others.
#pragma once

#include <vector>

#include "common/result.hpp"
#include "report/document.hpp"
#include "store/store.hpp"

namespace strata::report {

// Networks by levels and modes, how many of them each level has measured, and the reasons where it has not; no items
// where nothing was compared. Error: the store's.
Result<document::Section> levels_section(const std::vector<store::EntryFacts>& entries, const store::Store& store);

}  // namespace strata::report
