// SPDX-License-Identifier: Apache-2.0
#include "plan/out_of_memory_cases.hpp"

#include <fmt/format.h>

namespace strata::plan {
namespace {

// Elements of all inputs, batch included.
double elements(const core::Case& question) {
  double sum = 0;
  for (const auto& input : question.inputs) {
    double factor = 1;
    for (const auto extent : input.shape) factor *= static_cast<double>(extent);
    sum += factor;
  }
  return sum;
}

}  // namespace

bool no_smaller(const core::Case& a, const core::Case& b) {
  const bool same = a.model == b.model && a.mode == b.mode && a.precision == b.precision && a.device == b.device &&
                    a.threads == b.threads && a.inputs.size() == b.inputs.size();
  if (!same || a.batch < b.batch || a.batch < 1 || b.batch < 1) return false;
  return elements(a) / static_cast<double>(a.batch) >= elements(b) / static_cast<double>(b.batch);
}

void OutOfMemoryCases::add(const std::string& level, const core::Case& question) {
  seen_.emplace_back(level, question);
}

std::map<std::string, worker::Failure> OutOfMemoryCases::skipped(const core::Case& question) const {
  std::map<std::string, worker::Failure> all;
  for (const auto& [level, smaller] : seen_)
    if (no_smaller(question, smaller))
      all.emplace(level,
                  worker::Failure{
                      .state = State::out_of_memory,
                      .what = fmt::format("skipped: no smaller than {}, at which it ran out of memory", smaller.id()),
                      .hint = "--retry tries it all the same"});
  return all;
}

}  // namespace strata::plan
