// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "common/outside.hpp"
#include "proof/certificate.hpp"

namespace strata::proof {
using nlohmann::json;
namespace {

const json* line_of(const json& proof, const std::string& check) {
  for (const auto& line : outside::field(proof, "lines"))
    if (outside::text_or(line, "check") == check) return &line;
  return nullptr;
}

}  // namespace

bool can_be_continued(const json& proof) {
  const auto verdict = outside::text_or(proof, "verdict");
  return (verdict == to_string(OutputVerdict::Kind::equal) ||
          verdict == to_string(OutputVerdict::Kind::equal_looser)) &&
         outside::field(proof, "lines").is_array() && line_of(proof, "repeatability") == nullptr;
}

Certificate continued(const json& before, Certificate now) {
  for (auto& line : now.proof["lines"]) {
    if (line["result"] != "not_checked") continue;
    if (const auto* earlier = line_of(before, line["check"])) line = *earlier;
  }
  if (outside::text_or(before, "verdict") == to_string(OutputVerdict::Kind::equal_looser))
    now.kind = std::max(now.kind, OutputVerdict::Kind::equal_looser);
  now.none = false;
  now.proof["verdict"] = std::string(to_string(now.kind));
  now.proof["weak"] = outside::flag_or(before, "weak", false);
  for (const char* count :
       {"observed", "reported", "assumed"})  // each line that is decided now was decided before, too
    now.proof[count] = std::max(outside::integer_or(before, count, 0), outside::integer_or(now.proof, count, 0));
  const double worst = outside::number_or(before, "worst_ratio", -1);
  if (worst > outside::number_or(now.proof, "worst_ratio", -1)) now.proof["worst_ratio"] = worst;
  return now;
}

}  // namespace strata::proof
