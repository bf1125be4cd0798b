// SPDX-License-Identifier: Apache-2.0
// What memory a level is expected to need at a point of a sweep, from those points at which it was measured: a straight
// line over the bytes of activations and inputs, since beside them weights and libraries are the same everywhere.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/case.hpp"

namespace strata::plan {

class PeakModel {
 public:
  // `level`: with its variant and environment; `moving`: bytes of activations and inputs; `peak`: bytes, measured.
  void add(const std::string& level, const core::Case& question, double moving, double peak);
  // By least squares; nullopt: it was measured at fewer than two sizes of a case of this mode, precision and threads.
  std::optional<double> expected(const std::string& level, const core::Case& question, double moving) const;
  // The largest relative error over all that was measured, each foreseen from the others of its group; nullopt: no
  // group has three.
  std::optional<double> worst_error() const;

 private:
  struct Measured {
    double moving, peak;
  };
  static std::optional<double> on_line(const std::vector<Measured>& seen, double moving);
  static std::string group_of(const std::string& level, const core::Case& question);
  std::map<std::string, std::vector<Measured>> groups_;
};

}  // namespace strata::plan
