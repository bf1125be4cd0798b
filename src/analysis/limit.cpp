// SPDX-License-Identifier: Apache-2.0
#include "analysis/limit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/outside.hpp"

namespace strata::analysis {

std::optional<double> flops_of(const Json& bundle) {
  const auto it = bundle.find("flops");
  if (it == bundle.end() || !it->is_number() || it->get<double>() <= 0) return std::nullopt;
  return it->get<double>();
}

std::vector<std::string> uncounted_of(const Json& bundle) {
  std::vector<std::string> names;
  for (const auto& name : outside::field(bundle, "flops_uncounted"))
    if (name.is_string()) names.push_back(name.get<std::string>());
  return names;
}

std::string why_no_limit(const Json& bundle, const std::optional<store::Limits>& limits) {
  if (const auto names = uncounted_of(bundle); !names.empty())
    return fmt::format("the work of {} is not counted", fmt::join(names, ", "));
  if (!flops_of(bundle)) return "the network's work is not counted";
  if (!limits || limits->gflops <= 0) return "the machine's peak was not measured in this mode";
  if (!limits->quiet) return "the machine's peak was only measured while others used its cores, so it may be too low";
  return "";
}

}  // namespace strata::analysis
