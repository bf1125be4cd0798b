// SPDX-License-Identifier: Apache-2.0
// Do levels of other authors, all refused, speak for each other? Who shares no kernels with eager and is off by as much
// as all others may be right: then the envelope, which is of eager's runs, is too narrow. Judges nothing.
#pragma once

#include "proof/outputs.hpp"

namespace strata::proof {

// What one participant was found to answer. Its verdict must outlive this.
struct Answer {
  std::string name, author;  // participants of one author count as one; empty: eager's kernels
  const OutputVerdict* verdict;
};

// A sentence; empty: fewer than two authors, one of them is right or wrong in a way that has a name, or they are off
// each in its own way.
std::string doubt_of(const std::vector<Answer>& answers);

}  // namespace strata::proof
