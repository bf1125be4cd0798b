// SPDX-License-Identifier: Apache-2.0
// What a run knows of its machine, taken once for each number of threads and not again for each case: its peaks
// (peaks.hpp) and its process effect (calibrate.hpp).
#pragma once

#include <functional>
#include <map>
#include <tuple>

#include "measure/calibrate.hpp"

namespace strata::measure {

class MachineFacts {
 public:
  using MeasureLimits = std::function<Result<store::Limits>(const core::Case& question)>;
  using FindSigma = std::function<Result<ProcessSigma>(int threads)>;

  MachineFacts(MeasureLimits measure, FindSigma find) : measure_(std::move(measure)), find_(std::move(find)) {}
  // Of this machine. What is referred to must outlive the result. `budget_s`: of a case.
  static MachineFacts of(const Json& machine, double budget_s, store::Store& store);

  // As limits_of and process_sigma give them, errors too.
  Result<store::Limits> limits(const core::Case& question);
  Result<ProcessSigma> process_sigma(int threads);

 private:
  MeasureLimits measure_;
  FindSigma find_;
  std::map<std::tuple<core::Device, core::Precision, int>, store::Limits> limits_;
  std::map<int, ProcessSigma> sigmas_;
};

}  // namespace strata::measure
