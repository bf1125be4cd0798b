// SPDX-License-Identifier: Apache-2.0
#include "analysis/learning_verdict.hpp"

namespace strata::analysis {
namespace {

std::vector<Judged> judge_score(const Learner& reference, const std::vector<Learner>& others, const char* score,
                                double margin, double floor) {
  const auto own = reference.learning->ends(score);
  std::vector<Judged> all;
  for (const auto& other : others) {
    std::vector<double> differences;
    for (const auto& [repeat, value] : other.learning->ends(score))
      if (const auto pair = own.find(repeat); pair != own.end()) differences.push_back(value - pair->second);
    if (!differences.empty()) all.push_back({other.name, stats::paired_test(differences, floor)});
  }
  std::vector<double> p;
  for (const auto& element : all) p.push_back(element.test.p);
  const auto rejected = stats::holm(p, stats::kEquivalenceAlpha);
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i].likeness = stats::judge_likeness(all[i].test, margin, rejected[i]);
  return all;
}

}  // namespace

std::vector<Judged> judge_accuracy(const Learner& reference, const std::vector<Learner>& others, double margin,
                                   double test_images) {
  return judge_score(reference, others, "test_accuracy", margin, test_images > 0 ? 1 / test_images : 0);
}

std::vector<Judged> judge_loss(const Learner& reference, const std::vector<Learner>& others, double margin) {
  return judge_score(reference, others, "test_loss", margin, 0);
}

}  // namespace strata::analysis
