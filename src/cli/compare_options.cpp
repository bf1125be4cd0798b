// SPDX-License-Identifier: Apache-2.0
#include "cli/compare_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

#include "cli/capture_options.hpp"
#include "cli/option.hpp"
#include "common/duration.hpp"
#include "common/text.hpp"
#include "plan/axes.hpp"

namespace strata::cli {
namespace {

// What the presets stand for, as --help says it.
std::string presets_in_words() {
  std::vector<std::string> words;
  for (const auto& preset : plan::presets())
    words.push_back(
        fmt::format("{}: {} restarts, {} s measured a case, {} s to tune a level, {} s to serve a number of "
                    "clients",
                    preset.preset, preset.restarts, preset.budget_s, preset.tune_s, preset.serve_s));
  return fmt::format("{}", fmt::join(words, "; "));
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const auto& preset : plan::presets()) names.push_back(preset.preset);
  return names;
}

// The network and what goes in.
void add_network_options(CLI::App& verb, CompareArguments& a) {
  auto& o = a.options;
  verb.add_option("model", o.model,
                  "a model's name (strata list models), your own as path/to/file.py:build, or a file: .pt2, .pt "
                  "(TorchScript), .onnx")
      ->required();
  verb.add_option(
          "--batch", a.batch,
          "batch size, or several: 1,8,32, or a range as 1..32*2 (doubling) or 1..9+2; with several sizes, threads, "
          "modes or precisions every combination is a case (default: the model's own)")
      ->type_name("N[,N...]");
  add_input_options(verb, o, "your inputs");
  verb.add_option("--dataset", o.dataset,
                  "your inputs from the training images of a data set, as voc2012, or of a folder of images by class: "
                  "./strata data list says which there are")
      ->type_name("NAME");
  add_data_dir(verb, a.data_dir);
  add_skip_bad(verb, a.skip_bad);
  verb.get_option("--size")
      ->description(
          "pixels of images: 224, 224x320 as height x width, or several: 64,128 or 32..256*2 (default: the "
          "model's own)")
      ->type_name("SIZE[,SIZE...]");
  add_capture_options(verb, o, false);
}

// What is compared.
void add_question_options(CLI::App& verb, CompareArguments& a) {
  auto& o = a.options;
  list(verb.add_option("--levels", a.levels,
                       "only these backends, as eager,libtorch; a variant as level@variant, compile@freezing (default: "
                       "all that run on the device; strata list levels)"))
      ->type_name("LEVEL[,LEVEL...]");
  verb.add_option(
          "--reference", o.reference,
          "the level that the others' speedup is against, as eager or eager[new] (default: eager, in the first of "
          "several environments)")
      ->type_name("LEVEL");
  thread_counts(verb.add_option("--threads", a.threads,
                                "threads of every level, at most 4 for each processor, or several (default: physical "
                                "cores)"));
  choice(verb.add_option("--device", o.device, "where levels run")->capture_default_str(), {"cpu", "cuda"});
  verb.add_option("--mode", o.mode, "infer, train (an iteration is one optimiser step), or infer,train for both")
      ->type_name("{infer,train}[,...]")
      ->capture_default_str();
  verb.add_option(
          "--optimiser", o.optimiser,
          "of training, as sgd:lr=0.01,momentum=0.9,nesterov=true or adam:lr=0.001,beta1=0.9,beta2=0.999,eps=1e-8 "
          "or adamw:...; each also takes weight_decay=0.01, schedule=step/30/0.1 (default: the model's own, else sgd)")
      ->type_name("OPTIMISER");
  choice(verb.add_option("--loss", o.loss,
                         "of training: cross_entropy (of logits) or nll (of log-probabilities) (default: the model's "
                         "own, else cross_entropy)"),
         {"cross_entropy", "nll"});
  verb.add_option("--precision", o.precision,
                  "fp32 (strict float32), bf16, amp-bf16, tf32 (CUDA), or several as fp32,bf16: a case each")
      ->type_name("{fp32,tf32,bf16,amp-bf16}[,...]")
      ->capture_default_str();
  verb.add_option("--eval", o.eval,
                  "your score of every level's answers: file.py:score, where the file has inputs() and score(outputs)")
      ->type_name("FILE.py:FUNCTION");
  verb.add_flag("--tuned", o.tuned,
                "also find each level's best variant, in equal time, and measure it beside the default");
  verb.add_option("--clients", o.clients,
                  "also serve this many requests at once (concurrency), as 1,2,4: throughput, p50, p99, memory")
      ->type_name("N[,N...]");
  verb.add_option("--slo", o.slo, "what each level needs to meet a limit on the time of a request, as p99=20ms")
      ->type_name("pQ=TIME");
  verb.add_option("--dynamic", o.dynamic,
                  "also one artefact over several sizes, as batch=1..32: what recompiles, the time of each size, the "
                  "cost against the fixed one")
      ->type_name("batch=LOW..HIGH");
  verb.add_flag("--deep", o.deep, "compare layer by layer and show where levels first differ");
}

// How long, how often, how precisely.
void add_effort_options(CLI::App& verb, CompareArguments& a) {
  auto& o = a.options;
  choice(verb.add_option("--preset", o.preset, presets_in_words())->capture_default_str(), preset_names());
  whole(verb.add_option("--restarts", o.restarts, "fresh processes per level (default: the preset's)"), 1,
        plan::most_restarts);
  duration(verb.add_option("--budget", a.budget,
                           "measured time of a case, all levels together, as 60s (default: the preset's)"));
  verb.add_option("--ci-width", a.ci_width,
                  "stop when every speedup's interval is this narrow, as 1% (default: use the budget)")
      ->type_name("PERCENT");
  seed(verb.add_option("--order-seed", o.order_seed, "of the order of blocks (default: drawn and stored)"));
  verb.add_flag("--aa", o.aa, "also run every level against itself and show the false alarms");
  whole(verb.add_option("--weight-sets", o.weight_sets,
                        "drawn weight sets that outputs are proven on besides the timed weights")
            ->capture_default_str(),
        2, plan::most_weight_sets);
  duration(verb.add_option("--timeout", a.timeout,
                           "longest time for capturing the network (default: 1h) and for one request to a level "
                           "(default: 10m)"));
  positive(verb.add_option("--memory-limit", o.memory_limit_gib, "memory that each level may use (default: no limit)"))
      ->type_name("GIB");
  verb.add_flag("--allow-debug", o.allow_debug, "also time debug builds of levels");
}

// Whose PyTorch, and where results go.
void add_place_options(CLI::App& verb, CompareArguments& a) {
  add_environments(verb, a.python, a.environments);
  verb.add_flag("--dry-run", a.dry_run, "print the plan: cases, levels, what is done with them, how long it takes");
  verb.add_option("--name", a.options.name, "a name for this run")->type_name("NAME");
  add_store(verb, a.store);
  format_choice(verb.add_option("--format", a.format, "of the result on standard output"));
  verb.add_option("-o,--output", a.output, "where to write the HTML report (default: beside the store)")
      ->type_name("PATH");
}

}  // namespace

Result<void> read_texts(CompareArguments& a) {
  auto& o = a.options;
  if (!a.batch.empty()) {
    o.batches = STRATA_TRY(plan::whole_numbers("--batch", a.batch, 1, plan::largest_batch));
  }
  if (!a.threads.empty()) {
    o.thread_counts = STRATA_TRY(plan::whole_numbers("--threads", a.threads, 1, std::numeric_limits<int>::max()));
  }
  o.levels = split(a.levels, ',');
  o.environments = STRATA_TRY(read_environments(a.python, a.environments));
  if (!a.budget.empty()) o.budget_s = seconds_of(a.budget);
  if (!a.point_time.empty()) a.point_time_s = seconds_of(a.point_time);
  if (!a.timeout.empty()) o.timeout_s = seconds_of(a.timeout);
  if (!a.ci_width.empty() && !(o.ci_width = share_of(a.ci_width)))
    return fail(fmt::format("--ci-width {}: allowed: a share as 1%", a.ci_width), "--ci-width 1%", Exit::usage);
  return {};
}

void add_environments(CLI::App& verb, std::string& python, std::vector<std::string>& environments) {
  verb.add_option("--python", python,
                  "your interpreter with PyTorch 2.11 or newer (default: STRATA_PYTHON, else strata's own)")
      ->type_name("PATH");
  verb.add_option("--env", environments,
                  "an environment by name and interpreter, as old=/path/venv/bin/python, again for each more: levels "
                  "that need PyTorch take part once in each, the network is captured in the first")
      ->type_name("NAME=PATH")
      ->allow_extra_args(false);
}

Result<std::vector<plan::NamedPython>> read_environments(const std::string& python,
                                                         const std::vector<std::string>& environments) {
  if (!environments.empty() && !python.empty())
    return fail("--env and --python exclude each other: --python PATH is the short form for one environment",
                fmt::format("name that one too: --env NAME={}", python), Exit::usage);
  return plan::parse_environments(environments);
}

void add_compare_options(CLI::App& verb, CompareArguments& a) {
  add_network_options(verb, a);
  add_question_options(verb, a);
  add_effort_options(verb, a);
  add_place_options(verb, a);
  verb.get_option("--deep")->excludes(verb.get_option("--dynamic"));
  verb.footer(
      "Exit codes: 0 measured; 1 a level failed, crashed, timed out, was unequal or unproven; 2 wrong usage, nothing "
      "was "
      "measured; 3 the environment lacks what was required: a level that --levels names cannot run here (one of the "
      "default set that cannot is only listed: 0); 130, 143, 129 ended by Ctrl-C, SIGTERM or SIGHUP, what was measured "
      "is stored (./strata resume RUN continues); 141 the reader of the output went away.");
}

}  // namespace strata::cli
