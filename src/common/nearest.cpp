// SPDX-License-Identifier: Apache-2.0
#include "common/nearest.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "common/outside.hpp"

namespace strata {
namespace {

constexpr std::size_t longest_name = 128;  // longer input is no misspelt name, and the table is quadratic

std::string lowered(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) {
    last[j] = j;
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, substituted});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::optional<std::string> nearest(std::string_view got, const std::vector<std::string>& known) {
  if (got.empty() || got.size() > longest_name) {
    return std::nullopt;
  }
  const std::string lowered_word = lowered(got);
  std::optional<std::string> best;
  std::size_t best_distance = std::max<std::size_t>(1, got.size() / 3) + 1;  // one slip in three letters at most
  for (const std::string& name : known) {
    if (name.size() > longest_name) {
      continue;
    }
    const std::string candidate = lowered(name);
    std::size_t distance = edit_distance(lowered_word, candidate);
    if (lowered_word.size() >= 3 && candidate.starts_with(lowered_word)) {
      distance = std::min<std::size_t>(distance, 1);  // "open" for "openvino": a beginning is no slip
    }
    if (distance < best_distance) {
      best_distance = distance;
      best = name;
    }
  }
  return best;
}

Error unknown_value(const std::string& option, const std::string& got, const std::vector<std::string>& allowed) {
  // a number is no slip for another
  const bool word = std::any_of(got.begin(), got.end(), [](unsigned char c) { return std::isalpha(c) != 0; });
  const auto near = word ? nearest(got, allowed) : std::nullopt;
  return {fmt::format("{} {}: unknown{}; allowed: {}", option, got,
                      near ? fmt::format(" (did you mean '{}'?)", *near) : "", fmt::join(allowed, ", ")),
          "", Exit::usage, among(option, got, allowed)};
}

Error not_allowed(const std::string& option, const std::string& got, const std::string& allowed, std::string hint) {
  const bool number = outside::Json::parse(got, nullptr, false).is_number();
  return {fmt::format("{} {}: allowed: {}", option, got, allowed),
          std::move(hint),
          Exit::usage,
          {option, number ? got : outside::shown(got), allowed}};
}

ErrorFacts among(std::string where, const std::string& got, const std::vector<std::string>& allowed) {
  return {std::move(where), outside::shown(got), fmt::format("{}", fmt::join(allowed, ", "))};
}

}  // namespace strata
