// SPDX-License-Identifier: Apache-2.0
// What a visit of a point of a sweep takes beside its measured time: capturing the network, and its levels' processes,
// preparations and proofs. A constant and a part that grows with the operations of an iteration, fitted to visits that
// were seen; before any was, a guess from the machine's rate.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace strata::plan {

// `whole`: the first visit of a corner, or with --full-proof; `light`: that of another point; `later`: of a later walk.
enum class VisitKind { whole, light, later };
std::string_view name_of(VisitKind kind);

// Which visit, of what.
struct Visit {
  VisitKind kind = VisitKind::whole;
  bool fresh = true;      // the case was not captured before, so that nothing is prepared either
  std::string levels;     // who takes part, with mode, precision and threads: visits of equal text are alike
  std::size_t count = 1;  // of levels
  bool trains = false;
  double flops = 0;  // of a forward pass; 0: not known
};

struct MeasuredVisit {
  Visit visit;
  double capture_s = 0, rest_s = 0;
};

class VisitModel {
 public:
  // `flops_per_s`: what levels are guessed to reach, until visits were seen.
  explicit VisitModel(double flops_per_s) : flops_per_s_(flops_per_s) {}

  void add(MeasuredVisit seen);
  std::size_t seen() const { return seen_.size(); }

  // Seconds; 0 for a case that is captured already, and in later walks.
  double capture_s(const Visit& visit) const;
  // Seconds of all that is neither capture nor measured time.
  double rest_s(const Visit& visit) const;
  double beside_s(const Visit& visit) const { return capture_s(visit) + rest_s(visit); }

 private:
  double guessed_capture_s(const Visit& visit) const;
  double guessed_rest_s(const Visit& visit) const;
  double iteration_s(const Visit& visit) const;

  double flops_per_s_;
  std::vector<MeasuredVisit> seen_;
};

}  // namespace strata::plan
