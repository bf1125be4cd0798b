// SPDX-License-Identifier: Apache-2.0
// Every warning that a run can carry: its id, what it says, what to do. docs/warnings.md has a section for each id.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/load_facts.hpp"

namespace strata::analysis::warnings {

inline constexpr std::string_view kWeakProof = "W004", kOthersAgree = "W012";  // are told on the first screen

inline std::string another_run(int pid) {
  return "another strata run is measuring" + (pid > 0 ? fmt::format(" (pid {})", pid) : std::string());
}
inline store::Warning busy(const std::string& what, const LoadFacts& load) {
  std::string used;
  const auto add = [&](double share, const char* when) {
    used += fmt::format("{}{:.0f}%{} {}", used.empty() ? "" : " and ", share * 100,
                        used.empty() ? " of the machine" : "", when);
  };
  if (load.begin) add(*load.begin, "when measuring began");
  if (load.others) add(*load.others, "while it ran");
  auto text = fmt::format("{}: other programs used {}", what, used.empty() ? "an unknown part of the machine" : used);
  if (load.steal > 0.01) text += fmt::format("; the host gave {:.0f}% of it to other machines", *load.steal * 100);
  if (load.other_run) text += "; " + another_run(*load.other_run);
  return {
      .id = "W002",
      .what = text,
      .advice = load.other_run
                    ? "let one run end before the next begins; the times of several threads collapse beside other work"
                    : "measure on an idle machine; the times of several threads collapse beside other work"};
}
inline store::Warning not_together(std::uint64_t needed, std::uint64_t available) {
  return {.id = "W003",
          .what = fmt::format(
              "all workers together need {:.1f} GB and {:.1f} GB are free, so each level ran its restarts alone",
              static_cast<double>(needed) * 1e-9, static_cast<double>(available) * 1e-9),
          .advice = "compare fewer levels at once (--levels); the intervals are wider this way"};
}
inline store::Warning weak_proof(const std::string& what, const std::string& why, bool one_sample) {
  return {.id = std::string(kWeakProof),
          .what = fmt::format("the proof for {} is weak: {}", what, why),
          .advice = one_sample
                        ? "train with --batch 2 or more; see docs/warnings.md"
                        : "use real inputs (--inputs, --input-from) and weights of your own; see docs/method.md"};
}
inline store::Warning interrupted_run() {
  return {.id = "W005",
          .what = "the run was interrupted; it shows what was measured until then",
          .advice = "./strata resume RUN continues it"};
}
inline store::Warning broken_level(const std::string& why) {
  return {.id = "W006", .what = why, .advice = "fix its level.json; `strata level check` tests a level"};
}

// `why`: of one level, as "openvino: 10.7% between restarts, 2.1% assumed".
inline store::Warning restarts_part(const std::string& what, const std::string& why) {
  return {.id = "W007",
          .what = fmt::format("{}: {}", what, why),
          .advice =
              "the intervals hold what the restarts show; more --restarts narrow them, a quieter machine leaves more "
              "rounds"};
}

inline store::Warning emulated(const std::string& what) {
  return {.id = "W008",
          .what = fmt::format("{}: this processor has no bfloat16 instructions, so the precision is emulated", what),
          .advice = "the times hold for this machine only; one with AVX512_BF16, AMX or a GPU gives others"};
}

// `point`: of a sweep, as "batch 8, size 16".
inline store::Warning missing_point(const std::string& point, const std::string& why) {
  return {.id = "W009",
          .what = fmt::format("{} has no result: {}", point, why),
          .advice = "leave it out, or fix what it names"};
}

// `first`: epochs that the state has behind it that is used instead; 0: none.
inline store::Warning damaged_state(const std::string& level, int repeat, int first, const std::string& damage) {
  const auto from = first > 0 ? fmt::format("goes on from epoch {}", first) : "begins anew";
  return {.id = "W010",
          .what = fmt::format("{}, repeat {}: a kept state cannot be used ({}); it {}", level, repeat, damage, from),
          .advice = "check the disk; what is lost is trained again"};
}

inline store::Warning drops_specials(const std::string& level, const std::string& what) {
  return {.id = "W011",
          .what = fmt::format("{} {}", level, what),
          .advice = "check inputs before they reach it, where they may hold any"};
}

inline store::Warning others_agree(const std::string& what) {
  return {.id = std::string(kOthersAgree),
          .what = what,
          .advice = "run with --deep, which shows the first layer that differs, and report both as an issue of strata"};
}

}  // namespace strata::analysis::warnings
