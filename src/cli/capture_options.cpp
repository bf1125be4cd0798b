// SPDX-License-Identifier: Apache-2.0
#include "cli/capture_options.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "cli/option.hpp"
#include "common/duration.hpp"

namespace strata::cli {

void add_limits(CLI::App& verb) {
  const auto add = [&](const char* option, const char* variable, const char* about) {
    return positive(verb.add_option_function<double>(
        option, [variable](const double& limit) { ::setenv(variable, fmt::format("{}", limit).c_str(), 1); }, about));
  };
  if (auto* images = verb.get_option_no_throw("--input-from"))
    add("--max-megapixels", "STRATA_MAX_MEGAPIXELS", "largest image that --input-from may hold (default: 100)")
        ->needs(images);
  add("--max-expansion", "STRATA_MAX_EXPANSION",
      "how many times its size a .pt, .pt2 or .npz file may unpack to, if that is above 64 MB (default: 20)");
}

void add_input_options(CLI::App& verb, plan::Options& options, const std::string& inputs) {
  verb.add_option(
          "--input", options.inputs,
          "an input's form: 1x3x224x224, ids=int64:1x128:0..30521, mask=float32:1x12:1 (a constant); repeat for "
          "more inputs (default: the model's own)")
      ->type_name("FORM");
  verb.add_option("--size", options.size,
                  "pixels of images: 224, or 224x320 as height x width (default: the model's own)")
      ->type_name("SIZE");
  verb.add_option("--inputs", options.input_file,
                  fmt::format("{} from a .safetensors or .npz file: named tensors, one batch or several", inputs))
      ->type_name("PATH");
  verb.add_option(
          "--input-from", options.input_from,
          fmt::format("{} from a folder of JPEG or PNG images (default: photographs that strata ships, for images)",
                      inputs))
      ->type_name("PATH");
  add_limits(verb);
  verb.add_flag("--synthetic", options.synthetic, "random inputs instead of photographs");
  verb.add_option("--weights", options.weights,
                  "your weights: .safetensors, or .pt that loads without pickled code (default: the model's own)")
      ->type_name("PATH");
  seed(verb.add_option("--seed", options.seed, "of the weights, if they are not yours, and of synthetic inputs")
           ->capture_default_str());
}

void add_capture_options(CLI::App& verb, plan::Options& options, bool timeout) {
  verb.add_flag("--fresh", options.fresh, "capture the network again, whatever is cached");
  if (!timeout) return;
  duration(verb.add_option_function<std::string>(
      "--timeout", [&options](const std::string& text) { options.timeout_s = seconds_of(text); },
      "longest time that building and capturing the network may take, as 60s or 2m (default: 1h)"));
}

}  // namespace strata::cli
