// SPDX-License-Identifier: Apache-2.0
#include "training/initial_weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/hash.hpp"
#include "common/outside.hpp"
#include "common/python.hpp"
#include "common/temporary.hpp"
#include "worker/answers.hpp"

namespace strata::training {
namespace fs = std::filesystem;

Result<Initial> read_init(const std::string& text) {
  if (!text.ends_with(".safetensors")) return Initial{text, {}, text};
  const auto hash = sha256_of_file(text);
  if (!hash)
    return fail(fmt::format("--init {}: {}", text, hash.error().what),
                "a file of weights under PyTorch's names, as a training keeps it, or a scheme", Exit::usage);
  return Initial{"torch", fs::absolute(text),
                 fmt::format("file:{}-{}", fs::path(text).stem().string(), hash->substr(0, 8))};
}

Result<std::vector<fs::path>> initial_weights(const plan::Bundle& bundle, const Initial& initial, int repeats,
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
      {"-m", "capture.initial", "--model", bundle.spec.model, "--seeds", fmt::format("{}", fmt::join(seeds, ",")),
       "--scheme", initial.scheme, "--file", initial.file.string(), "--out", folder.string()});
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
