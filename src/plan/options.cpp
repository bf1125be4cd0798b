// SPDX-License-Identifier: Apache-2.0
#include "plan/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "common/hash.hpp"
#include "common/nearest.hpp"
#include "common/outside.hpp"
#include "common/text.hpp"
#include "plan/axes.hpp"
#include "plan/clients.hpp"
#include "plan/model_file.hpp"
#include "plan/option_values.hpp"
#include "probe/machine.hpp"

namespace strata::plan {
namespace fs = std::filesystem;
namespace {

constexpr int kThreadsOfAProcessor = 4;
constexpr double kLeastCase_s = 5;  // that a case takes, whatever it is

tl::unexpected<Error> usage(std::string what, std::string hint = {}) {
  return fail(std::move(what), std::move(hint), Exit::usage);
}

Result<void> one_of(const std::string& option, const std::string& got, const std::vector<std::string>& allowed) {
  for (const auto& value : allowed)
    if (value == got) return {};
  return tl::unexpected(unknown_value(option, got, allowed));
}

// "a,b": each allowed, none twice.
Result<std::vector<std::string>> list_of(const std::string& option, const std::string& text,
                                         const std::vector<std::string>& allowed) {
  std::vector<std::string> result;
  for (const auto& word : split(text, ',')) {
    STRATA_TRY(one_of(option, word, allowed));
    if (std::find(result.begin(), result.end(), word) != result.end())
      return usage(fmt::format("{} {}: {} is given twice", option, text, word));
    result.push_back(word);
  }
  return result;
}

// Those of `all` that are named, in that order. `none`: what is wrong where none is named.
template <class Value, std::size_t N>
Result<std::vector<Value>> named_of(const std::string& option, const std::string& text, const Value (&all)[N],
                                    const char* none) {
  std::vector<std::string> names;
  for (const auto value : all) names.emplace_back(name_of(value));
  const auto words = STRATA_TRY(list_of(option, text, names));
  if (words.empty()) return usage(none);
  std::vector<Value> named;
  for (const auto& word : words) named.push_back(all[std::find(names.begin(), names.end(), word) - names.begin()]);
  return named;
}

// The modes asked for, in that order.
Result<std::vector<core::Mode>> modes_of(const Options& options) {
  return named_of("--mode", options.mode, core::all_modes, "--mode: allowed: infer, train, or both as infer,train");
}

// The precisions asked for, in that order.
Result<std::vector<core::Precision>> precisions_of(const Options& options) {
  if (options.precision.find("int8") != std::string::npos)
    return usage(
        fmt::format("--precision {}: no level has an int8 path yet that is documented and needs no calibration data",
                    options.precision),
        "allowed: fp32, tf32, bf16, amp-bf16");
  return named_of("--precision", options.precision, core::all_precisions,
                  "--precision: allowed: fp32, tf32, bf16, amp-bf16, or several as fp32,bf16");
}

Result<std::string> existing(const std::string& option, const std::string& path, bool folder) {
  std::error_code ec;
  if (folder ? !fs::is_directory(path, ec) : !fs::is_regular_file(path, ec))
    return fail(fmt::format("{} {}: there is no such {}", option, path, folder ? "folder" : "file"), "check the path",
                Exit::usage, {option, outside::shown(path), folder ? "a folder" : "a file"});
  if (!folder) STRATA_TRY(check_size(path));
  return fs::absolute(path, ec).lexically_normal().string();
}

bool names_python_file(const std::string& text) {
  return text.size() > 3 && (text.find(".py:") != std::string::npos || text.ends_with(".py"));
}

// FILE.py:FUNCTION with the file's absolute path. `example`: of what may stand behind the colon.
Result<std::string> absolute_function(const std::string& option, const std::string& text, std::string_view example) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos || text.ends_with(".py"))
    return usage(fmt::format("{} {}: the function is missing", option, text),
                 fmt::format("write {}:{}", text, example));
  const auto path = STRATA_TRY(existing(option, text.substr(0, colon), false));
  return path + text.substr(colon);
}

// A name of docs/bundle.md, or a function of a file, whose path becomes absolute.
Result<std::string> absolute_loss(const std::string& loss) {
  if (names_python_file(loss))
    return absolute_function("--loss", loss, "loss, where loss(output, target) gives one number");
  if (one_of("--loss", loss, core::loss_names())) return loss;
  auto refused = unknown_value("--loss", loss, core::loss_names());
  if (refused.hint.empty()) refused.hint = "a loss of your own is given as file.py:function";
  return tl::unexpected(std::move(refused));
}

// Several names, none twice.
Result<void> check_once(const std::string& option, std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return {};
  return usage(fmt::format("{} {}: {} is given twice", option, fmt::join(names, ","), *twice), "name each once");
}

// Values of inputs come from one place.
Result<void> one_source(const Options& options) {
  std::vector<std::string> sources;
  if (options.synthetic) sources.emplace_back("--synthetic");
  if (!options.input_from.empty()) sources.emplace_back("--input-from");
  if (!options.dataset.empty()) sources.emplace_back("--dataset");
  if (!options.input_file.empty()) sources.emplace_back("--inputs");
  if (sources.size() < 2) return {};
  return usage(fmt::format("{} and {} exclude each other", sources[0], sources[1]), "leave one of them out");
}

Result<void> check(const Options& options) {
  const auto modes = STRATA_TRY(modes_of(options));
  const bool trains = std::find(modes.begin(), modes.end(), core::Mode::train) != modes.end();
  if (!trains && !options.optimiser.empty())
    return usage("--optimiser is for training only", "add --mode train, or leave it out");
  if (!trains && !options.loss.empty())
    return usage("--loss is for training only", "add --mode train, or leave it out");
  if (modes.size() == 1 && trains && options.deep)
    return usage("--deep compares the outputs of layers, which a training step does not give",
                 "use --deep with --mode infer");
  if (trains && !options.clients.empty()) return usage("--clients is for inference only", "use it with --mode infer");
  if (trains && !options.slo.empty()) return usage("--slo is for inference only", "use it with --mode infer");
  if (!options.clients.empty()) STRATA_TRY(parse_clients(options.clients));
  if (!options.slo.empty()) STRATA_TRY(parse_slo(options.slo));
  if (trains && !options.dynamic.empty())
    return usage("--dynamic is for inference only: a training step has one batch size", "use --mode infer for it");
  if (!options.loss.empty()) STRATA_TRY(absolute_loss(options.loss));
  const auto precisions = STRATA_TRY(precisions_of(options));
  if (trains && std::find(precisions.begin(), precisions.end(), core::Precision::bf16) != precisions.end())
    return usage(
        fmt::format("--precision {}: there is no training in bf16: a step below a 512th of a parameter is lost in its "
                    "rounding",
                    options.precision),
        "use amp-bf16 with --mode train, where parameters stay float32, or --mode infer");
  if (!options.dynamic.empty() && options.deep)
    return usage("--dynamic and --deep exclude each other: layers are compared at one size", "leave one of them out");
  if (!options.dynamic.empty() && precisions != std::vector{core::Precision::fp32})
    return usage(fmt::format("--dynamic with --precision {}: one artefact over several sizes is proven in fp32 only",
                             options.precision),
                 "leave one of them out");
  if (!options.eval.empty() && std::find(modes.begin(), modes.end(), core::Mode::infer) == modes.end())
    return usage("--eval scores a network's answers, which a training step does not give", "use --mode infer for it");
  STRATA_TRY(one_of("--device", options.device, {"cpu", "cuda"}));
  STRATA_TRY(one_source(options));
  if (options.max_megapixels && options.input_from.empty())
    return usage("--max-megapixels means nothing without --input-from", "leave --max-megapixels out");
  if (!options.size.empty() && (!options.inputs.empty() || !options.input_file.empty()))
    return usage(fmt::format("--size and {} exclude each other: that says the size of images already",
                             options.inputs.empty() ? "--inputs" : "--input"),
                 "leave one of them out");
  if (options.threads < 0 || options.threads > 4096)
    return tl::unexpected(not_allowed("--threads", std::to_string(options.threads), "1 to 4096"));
  if (options.weight_sets < 2 || options.weight_sets > most_weight_sets)
    return tl::unexpected(
        not_allowed("--weight-sets", std::to_string(options.weight_sets), fmt::format("2 to {}", most_weight_sets)));
  for (const int threads : options.thread_counts)
    STRATA_TRY(check_threads(fmt::format("--threads {}", threads), threads));
  STRATA_TRY(check_once("--levels", options.levels));
  for (const int batch : options.batches)
    if (batch < 1 || batch > largest_batch)
      return tl::unexpected(not_allowed("--batch", std::to_string(batch), fmt::format("1 to {}", largest_batch)));
  if (options.memory_limit_gib && *options.memory_limit_gib <= 0)
    return usage("--memory-limit: allowed: more than 0 GiB");
  if (options.timeout_s && !(*options.timeout_s > 0 && *options.timeout_s <= longest_s))
    return usage("--timeout: allowed: more than 0 seconds, at most 1000 days");
  return {};
}

// The spec of one mode: what only training needs is none in inference.
Result<core::CaseSpec> in_mode(core::CaseSpec spec, core::Mode mode, const Options& options) {
  spec.mode = mode;
  if (mode != core::Mode::train) return spec;
  if (!options.optimiser.empty()) {
    spec.optimiser = STRATA_TRY(parse_optimiser(options.optimiser));
  }
  if (!options.loss.empty()) spec.loss = STRATA_TRY(absolute_loss(options.loss));
  return spec;
}

// Each spec once with every value, in its order; as they are where there is none.
template <class Values, class Set>
std::vector<core::CaseSpec> times(const std::vector<core::CaseSpec>& specs, const Values& values, Set set) {
  if (values.empty()) return specs;
  std::vector<core::CaseSpec> all;
  for (const auto& spec : specs)
    for (const auto& value : values) set(all.emplace_back(spec), value);
  return all;
}

// A product too large for anybody is refused before it is made.
Result<void> check_number(const std::vector<std::size_t>& axes, const Options& options) {
  double cases = 1;
  for (const auto values : axes) cases *= static_cast<double>(std::max<std::size_t>(1, values));
  if (cases <= most_cases) return {};
  std::string fits;
  if (options.budget_s)
    fits = fmt::format("; --budget {:g}s is enough for about {:.0f} at {:g} s each", *options.budget_s,
                       *options.budget_s / kLeastCase_s, kLeastCase_s);
  return usage(fmt::format("a grid of {:.0f} cases; allowed: up to {}{}", cases, most_cases, fits),
               "take larger steps, as --batch 1..1024*2, or fewer axes");
}

// The product of all axes.
Result<std::vector<core::CaseSpec>> product(const core::CaseSpec& spec, const Options& options) {
  std::vector<core::CaseSpec> specs;
  const auto modes = STRATA_TRY(modes_of(options));
  for (const auto mode : modes) {
    auto spec_in_mode = STRATA_TRY(in_mode(spec, mode, options));
    specs.push_back(std::move(spec_in_mode));
  }
  std::vector<ImageSize> sizes;
  if (!options.size.empty()) {
    sizes = STRATA_TRY(image_sizes("--size", options.size));
  }
  const auto precisions = STRATA_TRY(precisions_of(options));
  STRATA_TRY(check_number(
      {specs.size(), precisions.size(), sizes.size(), options.thread_counts.size(), options.batches.size()}, options));
  specs = times(specs, precisions, [](auto& element, auto precision) { element.precision = precision; });
  specs = times(specs, sizes, [](auto& element, const auto& size) { element.size = {size.height, size.width}; });
  specs = times(specs, options.thread_counts, [](auto& element, int threads) { element.threads = threads; });
  return times(specs, options.batches, [](auto& element, int batch) { element.batch = batch; });
}

// Where inputs and weights are read from.
Result<void> set_sources(core::CaseSpec& spec, const Options& options) {
  if (!options.weights.empty()) {
    spec.weights = STRATA_TRY(existing("--weights", options.weights, false));
  }
  if (!options.input_from.empty()) {
    spec.input_from = STRATA_TRY(existing("--input-from", options.input_from, true));
  }
  if (!options.dataset_folder.empty()) spec.input_from = options.dataset_folder;
  if (options.input_file.empty()) return {};
  spec.input_file = STRATA_TRY(existing("--inputs", options.input_file, false));
  if (spec.input_file.ends_with(".safetensors") || spec.input_file.ends_with(".npz")) return {};
  return usage(fmt::format("--inputs {}: not a file of tensors; allowed: .safetensors, .npz", options.input_file),
               "--input (without s) says an input's form, --input-from names a folder of images");
}

}  // namespace

Result<void> check_threads(const std::string& what, std::int64_t threads) {
  if (threads == 1) return {};  // and nothing of the machine is read
  const int processors = std::max(1, probe::cpu().logical), most = kThreadsOfAProcessor * processors;
  if (threads >= 1 && threads <= most) return {};
  return fail(fmt::format("{}: allowed: 1 to {} ({} for each of the {} processor{} that this process may use)", what,
                          most, kThreadsOfAProcessor, processors, processors == 1 ? "" : "s"),
              {}, Exit::usage, {"--threads", std::to_string(threads), fmt::format("1 to {}", most)});
}

Result<std::string> absolute_model(const std::string& model) {
  if (is_model_file(model)) return existing("model", model, false);
  if (!names_python_file(model)) return model;
  return absolute_function("model", model, "build, where build() returns the module");
}

void limit_files(const Options& options) {
  const auto set = [](const char* variable, const std::optional<double>& limit, const std::string& found) {
    const auto value = limit ? fmt::format("{}", *limit) : found;
    value.empty() ? ::unsetenv(variable) : ::setenv(variable, value.c_str(), 1);
  };
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  static const auto pixels = variable("STRATA_MAX_MEGAPIXELS"), expansion = variable("STRATA_MAX_EXPANSION");
  set("STRATA_MAX_MEGAPIXELS", options.max_megapixels, pixels);
  set("STRATA_MAX_EXPANSION", options.max_expansion, expansion);
}

// Intervals rest on the scatter of restarts, so that time goes to restarts rather than to seconds within them.
const std::vector<Effort>& presets() {
  static const std::vector<Effort> all{
      {.restarts = 4, .budget_s = 20, .tune_s = 8, .preset = "quick", .serve_s = 9},
      {.restarts = 8, .budget_s = 120, .tune_s = 15, .preset = "standard", .serve_s = 30},
      {.restarts = 12, .budget_s = 360, .tune_s = 30, .preset = "thorough", .serve_s = 60}};
  return all;
}

Result<Effort> effort_of(const Options& options) {
  std::vector<std::string> names;
  for (const auto& preset : presets()) names.push_back(preset.preset);
  STRATA_TRY(one_of("--preset", options.preset, names));
  auto effort = *std::find_if(presets().begin(), presets().end(),
                              [&](const Effort& preset) { return preset.preset == options.preset; });
  if (options.restarts) effort.restarts = *options.restarts;
  if (options.budget_s) effort.budget_s = *options.budget_s;
  effort.serve_s = std::min(effort.serve_s, effort.budget_s);
  if (options.ci_width) effort.ci_width = *options.ci_width;
  if (effort.restarts < 1 || effort.restarts > most_restarts)
    return tl::unexpected(
        not_allowed("--restarts", std::to_string(effort.restarts), fmt::format("1 to {}", most_restarts)));
  if (effort.budget_s < 1 || effort.budget_s > 1e6)
    return tl::unexpected(
        not_allowed("--budget", fmt::format("{}", effort.budget_s), "1 second or more, as 60s or 2m"));
  if (options.ci_width && (effort.ci_width <= 0 || effort.ci_width >= 1))
    return tl::unexpected(
        not_allowed("--ci-width", fmt::format("{}%", effort.ci_width * 100), "between 0% and 100%, as 1%"));
  return effort;
}

Result<std::vector<core::CaseSpec>> specs_of(const Options& options) {
  STRATA_TRY(check(options));
  core::CaseSpec spec;
  spec.model = STRATA_TRY(absolute_model(options.model));
  spec.device = options.device == name_of(core::Device::cuda) ? core::Device::cuda : core::Device::cpu;
  spec.threads = options.threads ? options.threads : probe::physical_cores();
  spec.seed = options.seed;
  spec.synthetic = options.synthetic;
  spec.generic_sets = options.weight_sets;
  for (const auto& text : options.inputs) {
    auto input = STRATA_TRY(parse_input(text));
    spec.inputs.push_back(std::move(input));
  }
  STRATA_TRY(set_sources(spec, options));
  if (!options.dynamic.empty()) {
    const auto range = STRATA_TRY(parse_dynamic(options.dynamic));
    for (const int batch : options.batches)
      if (batch < range.low || batch > range.high)
        return usage(fmt::format("--dynamic {}: --batch {} lies outside", options.dynamic, batch),
                     "widen the range, or leave that batch out");
    spec.open_batch = range;
  }
  return product(spec, options);
}

Result<core::CaseSpec> spec_of(const Options& options) {
  const auto specs = STRATA_TRY(specs_of(options));
  if (specs.size() > 1 && !options.size.empty())
    return usage(fmt::format("--size {}: one network is captured here, at one size", options.size),
                 "name one; ./strata compare takes several");
  return specs.front();
}

}  // namespace strata::plan
