// SPDX-License-Identifier: Apache-2.0
// What changed between two runs, as a document.
#pragma once

#include "analysis/difference.hpp"
#include "report/document.hpp"

namespace strata::report {

document::Document difference_document(const analysis::DifferenceResult& difference);

}  // namespace strata::report
