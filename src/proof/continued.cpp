// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "proof/certificate.hpp"

namespace strata::proof {
namespace {

const store::ProofLine* line_of(const store::Proof& proof, const std::string& check) {
  const auto line =
      std::find_if(proof.lines.begin(), proof.lines.end(), [&](const auto& each) { return each.check == check; });
  return line == proof.lines.end() ? nullptr : &*line;
}

}  // namespace

bool can_be_continued(const store::Proof& proof) {
  return proof.is_equal() && line_of(proof, "repeatability") == nullptr;
}

Certificate continued(const store::Proof& before, Certificate now) {
  for (auto& line : now.proof.lines) {
    if (line.result != "not_checked") continue;
    if (const auto* earlier = line_of(before, line.check)) line = *earlier;
  }
  if (before.verdict == to_string(OutputVerdict::Kind::equal_looser))
    now.kind = std::max(now.kind, OutputVerdict::Kind::equal_looser);
  now.none = false;
  now.proof.verdict = std::string(to_string(now.kind));
  now.proof.weak = before.weak;
  for (const auto count : {&store::Proof::observed, &store::Proof::reported, &store::Proof::assumed})
    now.proof.*count = std::max(before.*count, now.proof.*count);  // each that is decided now was decided before, too
  now.proof.worst_ratio = std::max(before.worst_ratio, now.proof.worst_ratio);
  return now;
}

}  // namespace strata::proof
