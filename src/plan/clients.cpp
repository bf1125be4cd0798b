// SPDX-License-Identifier: Apache-2.0
#include "plan/clients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "common/nearest.hpp"
#include "common/text.hpp"

namespace strata::plan {
namespace {

constexpr int kMostClients = 256;

}  // namespace

Result<std::vector<int>> parse_clients(const std::string& text) {
  const auto bad = [&](const std::string& why) {
    return fail(fmt::format("--clients {}: {}", text, why),
                fmt::format("write how many requests are in flight, 1 to {}, as 4 or 1,2,4", kMostClients),
                Exit::usage);
  };
  std::vector<int> clients;
  if (text.empty()) return bad("a number is missing");
  for (const auto& part : split(text, ',')) {
    const auto value = number<std::int64_t>(part);
    if (!value) return bad(part.empty() ? "a number is missing" : fmt::format("'{}' is not a whole number", part));
    if (*value < 1 || *value > kMostClients) return bad(fmt::format("{} is not within 1 to {}", part, kMostClients));
    if (std::find(clients.begin(), clients.end(), *value) != clients.end())
      return bad(fmt::format("{} is given twice", part));
    clients.push_back(static_cast<int>(*value));
  }
  std::sort(clients.begin(), clients.end());
  return clients;
}

Result<Slo> parse_slo(const std::string& text) {
  static const std::map<std::string, double> quantiles{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}},
      units{{"us", 1e-3}, {"ms", 1}, {"s", 1e3}};
  const auto bad = [&](const std::string& why) {
    return fail(fmt::format("--slo {}: {}", text, why),
                "write a limit on the time of one request as p99=20ms; allowed: p50, p90, p99 and us, ms, s",
                Exit::usage);
  };
  const auto sign = text.find('=');
  if (sign == std::string::npos) return bad("there is no '='");
  const auto name = text.substr(0, sign), limit = text.substr(sign + 1);
  if (!quantiles.contains(name)) {
    const auto near = nearest(name, {"p50", "p90", "p99"});
    return bad(fmt::format("unknown quantile '{}'{}", name, near ? fmt::format(" (did you mean '{}'?)", *near) : ""));
  }
  double value = 0;
  const auto [end, error] = std::from_chars(limit.data(), limit.data() + limit.size(), value, std::chars_format::fixed);
  const std::string unit(end, limit.data() + limit.size());
  if (error != std::errc() || !std::isfinite(value) || value <= 0)
    return bad(fmt::format("'{}' is not a time above 0", limit));
  if (!units.contains(unit))
    return bad(unit.empty() ? fmt::format("'{}' has no unit", limit) : fmt::format("unknown unit '{}'", unit));
  return Slo{name, quantiles.at(name), value * units.at(unit)};
}

}  // namespace strata::plan
