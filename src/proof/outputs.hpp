// SPDX-License-Identifier: Apache-2.0
// Judges outputs of a level against the reference: error, dtype, shape, NaN, arg-max, and whether each follows its
// input.
#pragma once

#include "proof/reference.hpp"

namespace strata::proof {

struct OutputVerdict {
  enum class Kind { equal, equal_looser, mistrusted, unequal };  // in order of gravity
  Kind kind = Kind::equal;
  double worst_ratio = 0;  // largest error in units of the envelope, over all outputs and indices
  bool follows_inputs =
      false;                 // shown: two indices or more whose references differ by more than the bound, all matched
  std::string reason;        // what differs, where, by how much, and a likely cause where one can be inferred
  std::string reason_short;  // at most 8 words
  // Of a difference that has no name, to compare with those of other levels (agreement.hpp); else empty.
  struct Sample {
    std::string place;  // set, input, output
    std::vector<double> answer, expected;
  } sample;
  std::string first_difference;  // module path of the first differing tap, else the output's name; empty if equal

  bool equal_work() const { return kind == Kind::equal || kind == Kind::equal_looser; }
};
std::string_view to_string(OutputVerdict::Kind kind);
// One that is unequal, with its reasons.
OutputVerdict not_equal(std::string reason, std::string brief, std::string where = {});

struct Tolerance {
  bool reassociates = false;  // level.json: Winograd, FFT or the like
  double own_spread = 0;      // of a level that is not deterministic (spread_of); joins E0, up to 8 E0
};

// `actual` holds `<index>/<output>` for each of `indices`, as `prove` and `measure` write it. An index, output or set
// that the bundle has no reference for makes the verdict `unequal` with that reason.
OutputVerdict check_outputs(const Reference& reference, std::string_view set, const SafeTensors& actual,
                            std::span<const int> indices, Tolerance tolerance = {});

// Largest relative difference between runs of a level on the same inputs and its first run. Runs must have passed
// check_outputs' shapes.
double spread_of(const Reference& reference, std::span<const SafeTensors> runs, std::span<const int> indices);

}  // namespace strata::proof
