// SPDX-License-Identifier: Apache-2.0
// What others used of the machine before and while a case was measured: `trust.load` of a stored case.
#pragma once

#include <optional>
#include <vector>

#include "probe/load.hpp"
#include "store/record.hpp"

namespace strata::analysis {

struct LoadFacts {
  std::optional<double> begin;        // share of the processors that other programs had when the run itself did nothing
  std::optional<probe::Load> during;  // while blocks were measured, all restarts together
  std::vector<double> restarts;       // what others had (programs and host) in each restart
  std::optional<int> other_run;       // process of another strata run that measured; 0: its number is unknown

  double taken() const;  // by others while blocks were measured, or at the beginning; NaN: not known
  double most() const;   // that other programs were seen to have; 0: nothing is known
  bool busy() const;     // W002 holds
};

// From restarts that were measured one after the other.
void add_restarts(LoadFacts& facts, const std::vector<probe::Load>& restarts);

store::Json to_json(const LoadFacts& facts);
// A restart's loads as the store has them, and back; what is no load is left out.
store::Json to_json(const std::vector<probe::Load>& loads);
std::vector<probe::Load> loads_of(const store::Json& stored);
// Everything unknown where the case has no such facts.
LoadFacts load_of(const store::Case& run_case);

}  // namespace strata::analysis
