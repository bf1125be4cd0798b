// SPDX-License-Identifier: Apache-2.0
#include "measure/machine_facts.hpp"

#include "measure/peaks.hpp"

namespace strata::measure {

MachineFacts MachineFacts::of(const Json& machine, double budget_s, store::Store& store) {
  return {[&machine, budget_s, &store](const core::Case& question) {
            return limits_of(question, machine, budget_s, store);
          },
          [&machine, &store](int threads) { return measure::process_sigma(store, machine, threads); }};
}

Result<store::Limits> MachineFacts::limits(const core::Case& question) {
  const std::tuple key(question.device, question.precision, question.threads);
  if (const auto known = limits_.find(key); known != limits_.end()) return known->second;
  auto limits = measure_(question);
  if (limits) limits_.emplace(key, *limits);
  return limits;
}

Result<ProcessSigma> MachineFacts::process_sigma(int threads) {
  if (const auto known = sigmas_.find(threads); known != sigmas_.end()) return known->second;
  auto sigma = find_(threads);
  if (sigma) sigmas_.emplace(threads, *sigma);
  return sigma;
}

}  // namespace strata::measure
