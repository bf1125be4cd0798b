// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/capture_options.hpp"
#include "cli/option.hpp"
#include "cli/sharding.hpp"
#include "cli/train.hpp"
#include "plan/axes.hpp"

namespace strata::cli {
namespace {

constexpr int kMostEpochs = 100'000, kMostRepeats = 1000, kMostProofs = 1000;
constexpr std::int64_t kMostNorms = 1'000'000'000;
constexpr std::int64_t kMostImages = 1'000'000'000;

void add_question(CLI::App& verb, TrainArguments& a) {
  auto& o = a.options;
  verb.add_option("model", o.model,
                  "a model's name (strata list models) or your own classifier as path/to/file.py:build")
      ->required();
  verb.add_option("--dataset", a.dataset,
                  "what it learns: digits (needs no files), mnist, cifar10, ... (strata data list), or a folder of "
                  "images by class")
      ->required()
      ->type_name("NAME");
  add_data_dir(verb, a.data_dir);
  verb.add_flag("--partial", a.partial,
                "accept a set whose files hold fewer images than published; the name of the case states it");
  add_skip_bad(verb, a.skip_bad);
  list(verb.add_option("--levels", a.levels_text,
                       "only these backends, as eager,libtorch (default: all that train on the device)"))
      ->type_name("LEVEL[,LEVEL...]");
  whole(verb.add_option("--epochs", a.epochs, "how often every image is seen")->capture_default_str(), 1, kMostEpochs);
  whole(verb.add_option("--repeats", a.repeats, "trainings of each level, each with weights and an order of its own")
            ->capture_default_str(),
        1, kMostRepeats);
  whole(verb.add_option("--batch", a.batch, "images of one step")->capture_default_str(), 1, plan::largest_batch);
  verb.add_option("--size", o.size,
                  "height and width that images are brought to, as 32 or 224x160 (default: the data set's where the "
                  "network takes them, else the network's own)")
      ->type_name("SIZE");
  verb.add_option("--optimiser", o.optimiser,
                  "as sgd:lr=0.01,momentum=0.9,nesterov=true or adam:lr=0.001,beta1=0.9,beta2=0.999,eps=1e-8 or "
                  "adamw:...; each also takes weight_decay=0.01, schedule=step/STEPS/FACTOR, schedule=cosine/STEPS "
                  "(default: the model's own, else sgd)")
      ->type_name("OPTIMISER");
  choice(verb.add_option("--loss", o.loss,
                         "cross_entropy (of logits) or nll (of log-probabilities) (default: the model's own)"),
         {"cross_entropy", "nll"});
  auto* init = verb.add_option("--init", a.init,
                               "the weights that it begins with: torch (what the model's code makes), "
                               "kaiming[:fan_in|fan_out[,NONLINEARITY[,A]]], xavier[:NONLINEARITY], "
                               "normal:DEVIATION, or a file of weights under PyTorch's names (FILE.safetensors), the "
                               "same for all repeats; several, as 'torch;xavier', are trained one after the other and "
                               "compared")
                   ->type_name("SCHEME[;SCHEME...]")
                   ->capture_default_str();
  verb.add_flag("--sweep-init", a.sweep_init,
                "train from six initialisations, two of them badly scaled: which learn, and where a signal vanishes "
                "or explodes")
      ->excludes(init);
  list(verb.add_option("--augment", a.augment_text,
                       "flip (left to right, by chance), crop (moved by up to an eighth in each direction)"))
      ->type_name("{flip,crop}[,...]");
  whole(verb.add_option("--images", a.images, "at most so many images of each split, the first ones (default: all)"), 1,
        kMostImages);
  seed(verb.add_option("--seed", o.seed, "of the weights and the order")->capture_default_str());
  add_scale(verb, a.scale);
}

// How it is decided whether levels learn equally.
void add_verdict(CLI::App& verb, TrainArguments& a) {
  verb.add_option(
          "--margin", a.margin_text,
          "test accuracy within which a level counts as learning as well as the reference, in percentage points")
      ->type_name("PP")
      ->capture_default_str();
  positive(verb.add_option("--loss-margin", a.loss_margin, "the same of the test loss"))
      ->type_name("LOSS")
      ->capture_default_str();
  verb.add_option("--target", a.target_text, "report when each level first reaches this test accuracy, as 95%")
      ->type_name("PERCENT");
  choice(
      verb.add_option("--rule", a.rule,
                      "how it is decided whether levels learn equally: margin (of accuracy and loss at the end), or "
                      "also mlperf (MLPerf's check of the epochs to --target, in both directions; 20 epochs or more)")
          ->capture_default_str(),
      {"margin", "mlperf"});
}

void add_running(CLI::App& verb, TrainArguments& a) {
  auto& o = a.options;
  threads(verb.add_option("--threads", a.threads, "threads of every level, or all (default: physical cores)"));
  choice(verb.add_option("--device", o.device, "where levels run")->capture_default_str(), {"cpu", "cuda"});
  whole(verb.add_option("--proofs", a.proofs,
                        "steps of each repeat, at drawn places, that are proven against eager from the level's own "
                        "state, besides the last")
            ->capture_default_str(),
        0, kMostProofs);
  whole(verb.add_option(
            "--norms", a.norms,
            "steps between two measurements of how large activations and gradients are in each layer; 0: never "
            "(default: an epoch; of several initialisations a quarter)"),
        0, kMostNorms);
  seed(verb.add_option("--order-seed", o.order_seed, "of the order of images and levels (default: drawn and stored)"));
  duration(verb.add_option("--timeout", a.timeout_text,
                           "longest time for capturing the network (default: 1h) and for one request to a level "
                           "(default: 10m)"));
  positive(verb.add_option("--memory-limit", o.memory_limit_gib, "memory that each level may use (default: no limit)"))
      ->type_name("GIB");
  verb.add_flag("--allow-debug", o.allow_debug, "also train debug builds of levels");
  add_capture_options(verb, o, false);
  verb.add_option("--python", a.python,
                  "your interpreter with PyTorch 2.11 or newer (default: STRATA_PYTHON, else strata's own)")
      ->type_name("PATH");
  verb.add_flag("--dry-run", a.dry_run, "print the plan: levels, steps, and how long they take");
  verb.add_option("--name", o.name, "a name for this run")->type_name("NAME");
  add_store(verb, a.store);
  format_choice(verb.add_option("--format", a.format, "of the result on standard output"));
  verb.add_option("-o,--output", a.output, "where to write the HTML report (default: beside the store)")
      ->type_name("PATH");
}

}  // namespace

void add_scale(CLI::App& verb, std::string& scale) {
  verb.add_option("--scale", scale,
                  "do a part of a training, labelled as such: shares of epochs=0.1,repeats=0.3,images=0.01, or one of "
                  "the whole as 0.01, which cuts repeats first, then images, then epochs")
      ->type_name("SHARE");
}

void add_train_options(CLI::App& verb, TrainArguments& a) {
  add_question(verb, a);
  add_verdict(verb, a);
  add_running(verb, a);
  add_cluster_options(verb, a.cluster, "repeats");
  verb.footer(
      "Exit codes: 0 trained; 1 a level failed, crashed, timed out, was unequal or unproven; 2 wrong usage, nothing "
      "was trained; "
      "3 the environment lacks what was required; 130, 143, 129 ended by Ctrl-C, SIGTERM or SIGHUP, complete epochs "
      "are "
      "stored (./strata resume RUN continues); 141 the reader of the output went away.");
}

}  // namespace strata::cli
