// SPDX-License-Identifier: Apache-2.0
#include "generate/memory_budget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "common/text.hpp"

namespace strata::generate {
namespace {

constexpr std::array<std::pair<const char*, double>, 8> units{
    {{"B", 1}, {"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"KiB", 1024}, {"MiB", 1 << 20}, {"GiB", 1 << 30}}};
constexpr double most_bytes = 1e15;  // beyond it is a typing error

}  // namespace

Result<std::optional<compiler::MemoryBudget>> parse_memory_budget(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto bad = [&](const std::string& why) {
    return fail(fmt::format("--memory-budget {}: {}", text, why),
                "write bytes, as 200MB or 1.5GiB, or a share of what the step takes without a budget, as 70%",
                Exit::usage);
  };
  const auto end = std::min(text.find_first_not_of("0123456789."), text.size());
  const auto amount = number<double>(std::string_view(text).substr(0, end));
  const auto unit = text.substr(end);
  if (!amount) return bad("this is no number with a unit");
  if (unit == "%") {
    if (*amount <= 0 || *amount > 100) return bad("allowed: more than 0% and at most 100%");
    return compiler::MemoryBudget{0, *amount / 100};
  }
  const auto* known =
      std::find_if(units.begin(), units.end(), [&](const auto& known_unit) { return known_unit.first == unit; });
  if (known == units.end())
    return bad(unit.empty() ? "the unit is missing"
                            : fmt::format("unknown unit '{}'; allowed: %, B, kB, MB, GB, KiB, MiB, GiB", unit));
  const double bytes = *amount * known->second;
  if (bytes < 1 || bytes > most_bytes) return bad("allowed: 1 byte to 1000 TB");
  return compiler::MemoryBudget{static_cast<std::int64_t>(bytes), 0};
}

}  // namespace strata::generate
