// SPDX-License-Identifier: Apache-2.0
// A stored sweep as a document: who may be the fastest where, times along each axis, speedups, every outcome.
#pragma once

#include "report/document.hpp"
#include "store/record.hpp"

namespace strata::report {

// Whether a run is one of `strata sweep`.
bool is_sweep(const store::Run& run);

document::Document sweep_document(const store::Run& run);

}  // namespace strata::report
