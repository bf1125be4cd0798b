// SPDX-License-Identifier: Apache-2.0
// The program's own verdict on trainings that were run elsewhere, for bench/training_errors.py:
// `strata_judge_trainings` reads a test a line,
//   {"margin": 0.01, "loss_margin": 0.05, "test_images": 360,
//    "reference": {"test_accuracy": [0.95, ...], "test_loss": [0.2, ...]}, "level": {the same, repeat by repeat}}
// and writes a line for each: {"accuracy": {"verdict": "equivalent", "mean": ..., "half90": ..., "half95": ...},
// "loss": {the same}}. A line that is not so ends it with exit code 2.
#include <fmt/format.h>

#include <iostream>
#include <string>

#include "analysis/learning_verdict.hpp"
#include "common/outside.hpp"

namespace {

using namespace strata;

Result<analysis::Learning> learning_in(const outside::Json& test, const char* who) {
  std::vector<store::Series> all;
  for (const char* score : {"test_accuracy", "test_loss"}) {
    const auto& values = outside::field(outside::field(test, who), score);
    if (!values.is_array()) return fail(fmt::format("{}.{} is not there, or no list", who, score));
    int repeat = 0;
    for (const auto& value : values) {
      if (!value.is_number()) return fail(fmt::format("{}.{} holds {}", who, score, outside::shown(value)));
      all.push_back({score, "1", "epoch", {1}, {value.get<double>()}, repeat++});
    }
  }
  return analysis::Learning(all);
}

Result<double> number_in(const outside::Json& test, const char* name) {
  const auto& value = outside::field(test, name);
  if (!value.is_number()) return fail(fmt::format("{} is not there, or no number", name));
  return value.get<double>();
}

outside::Json json_of(const std::vector<analysis::Judged>& judged) {
  if (judged.empty()) return nullptr;
  const auto& verdict = judged.front();
  return {{"verdict", std::string(to_string(verdict.likeness))},
          {"mean", verdict.test.mean},
          {"half90", verdict.test.half90},  // not finite with one repeat, which JSON shows as null
          {"half95", verdict.test.half95}};
}

Result<outside::Json> judge(const std::string& line) {
  const auto test = STRATA_TRY(outside::parse(line, "a test"));
  const auto margin = number_in(test, "margin"), loss_margin = number_in(test, "loss_margin"),
             images = number_in(test, "test_images");
  const auto reference = learning_in(test, "reference"), level = learning_in(test, "level");
  for (const auto* number : {&margin, &loss_margin, &images})
    if (!*number) return tl::unexpected(number->error());
  for (const auto* learning : {&reference, &level})
    if (!*learning) return tl::unexpected(learning->error());
  const analysis::Learner own{"reference", &*reference};
  const std::vector<analysis::Learner> others{{"level", &*level}};
  return outside::Json{{"accuracy", json_of(analysis::judge_accuracy(own, others, *margin, *images))},
                       {"loss", json_of(analysis::judge_loss(own, others, *loss_margin))}};
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const auto judged = judge(line);
    if (!judged) {
      fmt::print(stderr, "{}\n", judged.error().what);
      return 2;
    }
    fmt::print("{}\n", judged->dump());
  }
  return 0;
}
