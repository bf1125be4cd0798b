// SPDX-License-Identifier: Apache-2.0
#include "proof/agreement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace strata::proof {

namespace {

constexpr double closer = 4;         // levels agree that part by at most this fraction of how far they are off
constexpr double alike = 8;          // the same size of error: the largest is at most so many times the smallest
constexpr double of_rounding = 1e3;  // envelopes: an error beyond it is another computation's, unless others have it

// Euclidean distance of two samples of one place.
double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) squares += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(squares);
}

// The furthest that two of them part, as a share of how far the nearer is off; infinite: they failed at other places.
double parting(const std::vector<Answer>& answers) {
  double most = 0;
  for (const Answer& a : answers)
    for (const Answer& b : answers) {
      const auto &one = a.verdict->sample, &other = b.verdict->sample;
      if (one.place != other.place) return INFINITY;
      const double off = std::min(distance(one.answer, one.expected), distance(other.answer, other.expected));
      most = std::max(most, distance(one.answer, other.answer) / off);
    }
  return most;
}

}  // namespace

std::string doubt_of(const std::vector<Answer>& answers) {
  std::vector<Answer> others;
  std::set<std::string> authors, names;
  for (const Answer& answer : answers) {
    if (answer.author.empty()) continue;
    if (answer.verdict->sample.place.empty()) return {};
    others.push_back(answer);
    authors.insert(answer.author);
    names.insert(answer.name);
  }
  if (authors.size() < 2) return {};
  const auto [least, most] = std::ranges::minmax(others, {}, [](const Answer& a) { return a.verdict->worst_ratio; });
  const double low = least.verdict->worst_ratio, high = most.verdict->worst_ratio, parts = parting(others);
  const auto who = fmt::format("{}, which share no kernels with eager,", fmt::join(names, ", "));
  const auto off = fmt::format("{:.3g} to {:.3g} times the envelope of eager's runs", low, high);
  if (parts <= 1 / closer)
    return fmt::format(
        "{} agree with each other (they part by {:.2g} of what they are off) and are all {} off: that envelope may be "
        "too narrow for this network, unless they share a fault, as of its export",
        who, parts, off);
  if (high > of_rounding || high > alike * low) return {};
  return fmt::format("{} are all off by about as much, {}: that may be too narrow for this network", who, off);
}

}  // namespace strata::proof
