// SPDX-License-Identifier: Apache-2.0
// What memory a level is expected to need at a point of a sweep, from those points at which it was measured. Beside the
// bytes of activations and inputs, over which it grows as a straight line, weights and libraries are the same at every
// batch; how weights are held may depend on the size of images (kernels chosen by it).
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/case.hpp"

namespace strata::plan {

class PeakModel {
 public:
  // `level`: with its variant and environment; `moving`: bytes of activations and inputs; `peak`: bytes, measured.
  void add(const std::string& level, const core::Case& question, double moving, double peak);
  // From the measured point of the same image size whose bytes are nearest, along the slope that points of one size
  // have together; where none has that size, on the line of all points (least squares). nullopt: the level was measured
  // at fewer than two points of this mode, precision and threads.
  std::optional<double> expected(const std::string& level, const core::Case& question, double moving) const;
  // The largest relative error over what was measured between the ends of its group (which are always measured), each
  // foreseen from the others; nullopt: no group has three points.
  std::optional<double> worst_error() const;

 private:
  struct Measured {
    double moving, peak;
    std::optional<std::pair<std::int64_t, std::int64_t>> size;
  };
  struct Line {
    double slope, moving, peak;  // through that point
  };
  static std::optional<Line> line_of(std::span<const Measured> seen);
  static std::optional<double> foreseen(const std::vector<Measured>& seen, const Measured& of);
  static std::string group_of(const std::string& level, const core::Case& question);
  std::map<std::string, std::vector<Measured>> groups_;
};

}  // namespace strata::plan
