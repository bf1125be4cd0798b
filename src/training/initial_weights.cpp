// SPDX-License-Identifier: Apache-2.0
#include "training/initial_weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/outside.hpp"
#include "common/python.hpp"
#include "common/temporary.hpp"
#include "worker/answers.hpp"

namespace strata::training {
namespace fs = std::filesystem;

Result<std::vector<fs::path>> initial_weights(const plan::Bundle& bundle, const std::string& scheme, int repeats,
                                              const fs::path& folder, const Installation& place) {
  constexpr auto longest = std::chrono::minutes(10);
  std::vector<std::int64_t> seeds;
  std::vector<fs::path> files;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    seeds.push_back(bundle.question.seed + repeat);
    files.push_back(folder / fmt::format("{}.safetensors", seeds.back()));
  }
  worker::Launch launch;
  launch.argv = python_command(
      place.python, place.root,
      {"-m", "capture.initial", "--model", outside::text_or(outside::field(bundle.info, "spec"), "model"), "--seeds",
       fmt::format("{}", fmt::join(seeds, ",")), "--scheme", scheme, "--out", folder.string()});
  launch.env = python_variables({place.root / "src", place.root / "sdk/python"});
  launch.env["STRATA_OVERLAY"] = place.overlay;
  if (const auto temporary = temporary_folder(place.cache)) launch.env["TMPDIR"] = *temporary;
  launch.log_path = (folder / "initial.log").string();
  const auto ran = worker::run_to_end(launch, longest);
  if (!ran) return fail(ran.error().what, ran.error().hint);
  const auto answer = worker::last_line(*ran);
  if (outside::flag_or(answer, "ok", false)) return files;
  const auto what = outside::text_or(answer, "what");
  return fail(what.empty() ? "the initial weights cannot be made: " + ran->log_tail : what,
              outside::text_or(answer, "hint"),
              outside::text_or(answer, "code") == "usage" ? Exit::usage : Exit::failed);
}

}  // namespace strata::training
