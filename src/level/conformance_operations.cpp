// SPDX-License-Identifier: Apache-2.0
// Conformance of the optional request `operations`: times of each operation that add up to the iteration.
#include <fmt/format.h>

#include "level/conformance_session.hpp"
#include "worker/answers.hpp"

namespace strata::level {
namespace {

constexpr std::size_t kIterations = 2;

Outcome times_operations(Session& session) {
  if (!session.offers("operations")) return {Verdict::skip, not_offered};
  STRATA_TRY(session.load());
  const auto answer = STRATA_TRY(session.ask("operations", {{"iterations", kIterations}, {"indices", {0, 0}}}));
  if (!answer["ok"].get<bool>()) {
    const auto what = text_of(answer, "what");
    return text_of(answer, "code") == "unsupported" && !what.empty() ? Outcome(Verdict::skip, "unsupported: " + what)
                                                                     : Outcome(because("operations failed: " + what));
  }
  const auto wall = worker::read_integers(answer, "wall_ns", kIterations);
  auto sums = worker::read_integers(answer, "after_ns", kIterations);
  if (!wall || !sums) return {Verdict::fail, wall ? sums.error().what : wall.error().what};
  const Json operations = answer.value("operations", Json());
  if (!operations.is_array() || operations.empty()) return {Verdict::fail, "\"operations\" must list at least one"};
  for (const auto& operation : operations) {
    if (text_of(operation, "operation").empty()) return {Verdict::fail, "an operation has no name"};
    const auto ns = worker::read_integers(operation, "ns", kIterations),
               gap = worker::read_integers(operation, "gap_ns", kIterations);
    if (!ns || !gap) return {Verdict::fail, ns ? gap.error().what : ns.error().what};
    for (std::size_t i = 0; i < kIterations; ++i) (*sums)[i] += (*ns)[i] + (*gap)[i];
  }
  for (std::size_t i = 0; i < kIterations; ++i)
    if ((*sums)[i] != (*wall)[i])
      return {Verdict::fail,
              fmt::format("operations, gaps and what follows take {} ns, the iteration {}", (*sums)[i], (*wall)[i])};
  return session.still_answers();
}

}  // namespace

std::vector<Rule> rules_of_operations() {
  return {{"times operations so that they add up to the iteration", true, times_operations}};
}

}  // namespace strata::level
