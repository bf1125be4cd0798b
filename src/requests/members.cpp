// SPDX-License-Identifier: Apache-2.0
#include "requests/members.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "generate/generate.hpp"

namespace strata::requests {
namespace {

using Members = std::vector<Member>;

constexpr int kMostEpochs = 100'000, kMostRepeats = 1000, kMostProofs = 1000;
constexpr std::int64_t kMostNorms = 1'000'000'000, kMostImages = 1'000'000'000, kMostPixels = 4096, kMostShown = 10'000;

constexpr const char* kOptimisers =
    "as sgd:lr=0.01,momentum=0.9,nesterov=true or adam:lr=0.001,beta1=0.9,beta2=0.999,eps=1e-8 or adamw:...; each also "
    "takes weight_decay=0.01, clip_norm=1 (the largest norm of all gradients together), schedule=step/STEPS/FACTOR, "
    "schedule=cosine/STEPS (default: the model's own, else sgd)";

Member also(Member member, const char* option) {
  member.also = option;
  return member;
}

Member required(Member member) {
  member.required = true;
  return member;
}

void add(Members& all, Members more) {
  for (auto& member : more) all.push_back(std::move(member));
}

// What the presets stand for, as help says it.
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

Member size_of(plan::Options& o, const std::string& help, bool several) {
  return described(text(o.size, several ? Arity::list : Arity::one), "size", "--size", help,
                   several ? "SIZE[,SIZE...]" : "SIZE");
}

Member fresh_of(plan::Options& o) {
  return described(flag(o.fresh), "fresh", "--fresh", "capture the network again, whatever is cached");
}

Member name_of(std::string& name) {
  return described(text(name), "name", "--name", "a name for this run", "NAME");
}

Member scale_of(std::string& scale) {
  return described(text(scale), "scale", "--scale",
                   "do a part of a training, labelled as such: shares of epochs=0.1,repeats=0.3,images=0.01, or one of "
                   "the whole as 0.01, which cuts repeats first, then images, then epochs",
                   "SHARE");
}

Member timeout_of(plan::Options& o) {
  return described(
      seconds(o.timeout_s), "timeout_s", "--timeout",
      "longest time for capturing the network (default: 1h) and for one request to a level (default: 10m)");
}

Member memory_limit_of(plan::Options& o) {
  return described(positive(o.memory_limit_gib), "memory_limit_gib", "--memory-limit",
                   "memory that each level may use (default: no limit)", "GIB");
}

Member weight_sets_of(plan::Options& o, const char* help) {
  return described(whole(o.weight_sets, 2, plan::most_weight_sets), "weight_sets", "--weight-sets", help);
}

Member optimiser_of(plan::Options& o, const std::string& help) {
  return also(described(text(o.optimiser), "optimiser", "--optimiser", help, "OPTIMISER"), "--optimizer");
}

// The network and what goes in.
Members network(plan::Options& o) {
  Members all{
      required(described(text(o.model), "model", "",
                         "a model's name (strata list models), one of a package as timm:convnext_tiny, your own as "
                         "path/to/file.py:build, or a file: .pt2, .pt (TorchScript), .onnx")),
      described(
          axis(o.batches, 1, plan::largest_batch), "batch", "--batch",
          "batch size, or several: 1,8,32, or a range as 1..32*2 (doubling) or 1..9+2; with several sizes, threads, "
          "modes or precisions every combination is a case (default: the model's own)")};
  add(all, members_of_inputs(o, "your inputs"));
  for (auto& member : all)
    if (member.name == "size")
      member =
          size_of(o,
                  "pixels of images: 224, 224x320 as height x width, or several: 64,128 or 32..256*2 (default: the "
                  "model's own)",
                  true);
  all.push_back(
      described(text(o.dataset), "dataset", "--dataset",
                "your inputs from the training images of a data set, as voc2012, or of a folder of images by class: "
                "./strata data list says which there are",
                "NAME"));
  all.push_back(member_of_data_dir(o.data_dir));
  all.push_back(member_of_skip_bad(o.skip_bad));
  all.push_back(fresh_of(o));
  return all;
}

// What is compared.
Members question(plan::Options& o) {
  return {
      member_of_levels(o.levels,
                       "only these backends, as eager,libtorch; a variant as level@variant, compile@freezing (default: "
                       "all that run on the device; strata list levels)"),
      described(text(o.reference), "reference", "--reference",
                "the level that the others' speedup is against, as eager or eager[new] (default: eager, in the first "
                "of several environments)",
                "LEVEL"),
      described(thread_counts(o.thread_counts), "threads", "--threads",
                "threads of every level, at most 4 for each processor, or several (default: physical cores)"),
      member_of_device(o.device, "levels run"),
      described(text(o.mode, Arity::list), "mode", "--mode",
                "infer, train (an iteration is one optimiser step), or infer,train for both", "{infer,train}[,...]"),
      optimiser_of(o, fmt::format("of training, {}", kOptimisers)),
      described(text(o.loss), "loss", "--loss",
                fmt::format("of training: {}, or your own (default: the model's own, else cross_entropy; output: the "
                            "network's first output is its loss)",
                            fmt::join(core::loss_names(), ", ")),
                "LOSS|FILE.py:FUNCTION"),
      described(text(o.precision, Arity::list), "precision", "--precision",
                "fp32 (strict float32), bf16, amp-bf16, tf32 (CUDA), or several as fp32,bf16: a case each",
                "{fp32,tf32,bf16,amp-bf16}[,...]"),
      described(text(o.eval), "eval", "--eval",
                "your score of every level's answers: file.py:score, where the file has inputs() and score(outputs)",
                "FILE.py:FUNCTION"),
      described(flag(o.tuned), "tuned", "--tuned",
                "also find each level's best variant, in equal time, and measure it beside the default"),
      described(text(o.clients, Arity::list), "clients", "--clients",
                "also serve this many requests at once (concurrency), as 1,2,4: throughput, p50, p99, memory",
                "N[,N...]"),
      described(text(o.slo), "slo", "--slo",
                "what each level needs to meet a limit on the time of a request, as p99=20ms", "pQ=TIME"),
      described(text(o.dynamic), "dynamic", "--dynamic",
                "also one artefact over several sizes, as batch=1..32: what recompiles, the time of each size, the "
                "cost against the fixed one",
                "batch=LOW..HIGH"),
      described(flag(o.deep), "deep", "--deep", "compare layer by layer and show where levels first differ"),
      described(flag(o.profile), "profile", "--profile",
                "also time every level's operations one by one, in a pass of its own: which layer costs what where")};
}

// How long, how often, how precisely.
Members effort(plan::Options& o, const char* budget) {
  return {described(choice(o.preset, preset_names()), "preset", "--preset", presets_in_words()),
          described(whole(o.restarts, 1, plan::most_restarts), "restarts", "--restarts",
                    "fresh processes per level (default: the preset's)"),
          described(seconds(o.budget_s), "budget_s", "--budget", budget),
          described(share(o.ci_width), "ci_width", "--ci-width",
                    "stop when every speedup's interval is this narrow, as 1% (default: use the budget)"),
          described(whole(o.order_seed, 0), "order_seed", "--order-seed",
                    "of the order of blocks (default: drawn and stored)"),
          described(flag(o.aa), "aa", "--aa", "also run every level against itself and show the false alarms"),
          weight_sets_of(o, "drawn weight sets that outputs are proven on besides the timed weights"),
          timeout_of(o),
          memory_limit_of(o),
          described(flag(o.allow_debug), "allow_debug", "--allow-debug", "also time debug builds of levels")};
}

Members comparison(CompareRequest& request, const char* budget) {
  auto& o = request.options;
  auto all = network(o);
  add(all, question(o));
  add(all, effort(o, budget));
  all.push_back(member_of_python(request.python));
  all.push_back(member_of_environments(o.environments));
  all.push_back(name_of(o.name));
  return all;
}

// What a training is.
Members training(TrainRequest& r) {
  auto& o = r.options;
  return {
      required(described(text(o.model), "model", "",
                         "a model's name (strata list models) or your own classifier as path/to/file.py:build")),
      required(described(text(r.dataset), "dataset", "--dataset",
                         "what it learns: digits (needs no files), mnist, cifar10, ... (strata data list), or a folder "
                         "of images by class",
                         "NAME")),
      member_of_data_dir(o.data_dir),
      described(flag(r.partial), "partial", "--partial",
                "accept a set whose files hold fewer images than published; the name of the case states it"),
      member_of_skip_bad(o.skip_bad),
      member_of_levels(o.levels, "only these backends, as eager,libtorch (default: all that train on the device)"),
      described(whole(r.epochs, 1, kMostEpochs), "epochs", "--epochs", "how often every image is seen"),
      described(whole(r.repeats, 1, kMostRepeats), "repeats", "--repeats",
                "trainings of each level, each with weights and an order of its own"),
      described(whole(r.batch, 1, plan::largest_batch), "batch", "--batch", "images of one step"),
      size_of(o,
              "height and width that images are brought to, as 32 or 224x160 (default: the data set's where the "
              "network takes them, else the network's own)",
              false),
      optimiser_of(o, kOptimisers),
      described(choice(o.loss, {"cross_entropy", "nll"}), "loss", "--loss",
                "cross_entropy (of logits) or nll (of log-probabilities) (default: the model's own)"),
      described(text(r.init), "init", "--init",
                "the weights that it begins with: torch (what the model's code makes), "
                "kaiming[:fan_in|fan_out[,NONLINEARITY[,A]]], xavier[:NONLINEARITY], "
                "normal:DEVIATION, or a file of weights under PyTorch's names (FILE.safetensors), the "
                "same for all repeats; several, as 'torch;xavier', are trained one after the other and "
                "compared",
                "SCHEME[;SCHEME...]"),
      described(flag(r.sweep_init), "sweep_init", "--sweep-init",
                "train from six initialisations, two of them badly scaled: which learn, and where a signal vanishes "
                "or explodes"),
      described(words(r.augment, {"flip", "crop"}), "augment", "--augment",
                "flip (left to right, by chance), crop (moved by up to an eighth in each direction)"),
      described(whole(r.images, 1, kMostImages), "images", "--images",
                "at most so many images of each split, the first ones (default: all)"),
      described(whole(o.seed, 0), "seed", "--seed", "of the weights and the order"),
      scale_of(r.scale)};
}

// How it is decided whether levels learn equally, and how it is run.
Members judged(TrainRequest& r) {
  auto& o = r.options;
  return {
      described(percentage_points(r.margin), "margin", "--margin",
                "test accuracy within which a level counts as learning as well as the reference, in percentage points"),
      described(positive(r.loss_margin), "loss_margin", "--loss-margin", "the same of the test loss", "LOSS"),
      described(percent(r.target), "target", "--target",
                "report when each level first reaches this test accuracy, as 95%"),
      described(choice(r.rule, {"margin", "mlperf"}), "rule", "--rule",
                "how it is decided whether levels learn equally: margin (of accuracy and loss at the end), or also "
                "mlperf (MLPerf's check of the epochs to --target, in both directions; 20 epochs or more)"),
      described(threads(r.threads), "threads", "--threads", "threads of every level, or all (default: physical cores)"),
      member_of_device(o.device, "levels run"),
      described(whole(r.proofs, 0, kMostProofs), "proofs", "--proofs",
                "windows of steps of each repeat, at drawn places, that are proven against eager from the level's own "
                "state, besides the last"),
      described(whole(r.norms, 0, kMostNorms), "norms", "--norms",
                "steps between two measurements of how large activations and gradients are in each layer; 0: never "
                "(default: an epoch; of several initialisations a quarter)"),
      described(whole(o.order_seed, 0), "order_seed", "--order-seed",
                "of the order of images and levels (default: drawn and stored)"),
      timeout_of(o),
      memory_limit_of(o),
      described(flag(o.allow_debug), "allow_debug", "--allow-debug", "also train debug builds of levels"),
      fresh_of(o),
      member_of_python(r.python),
      name_of(o.name)};
}

Member output_of(std::string& output, const char* help, const char* type) {
  return also(described(text(output), "output", "-o", help, type), "--output");
}

Member folder_of(std::string& output) {
  return required(output_of(output, "the folder to make; all of it appears, or nothing", "PATH"));
}

Member model_as_in_compare(plan::Options& o) {
  return required(described(text(o.model), "model", "", "as in compare"));
}

}  // namespace

Members members_of_inputs(plan::Options& o, const std::string& inputs) {
  return {
      described(repeated(o.inputs), "input", "--input",
                "an input's form: 1x3x224x224, ids=int64:1x128:0..30521, mask=float32:1x12:1 (a constant); repeat for "
                "more inputs (default: the model's own)",
                "FORM"),
      size_of(o, "pixels of images: 224, or 224x320 as height x width (default: the model's own)", false),
      described(text(o.input_file), "inputs", "--inputs",
                fmt::format("{} from a .safetensors or .npz file: named tensors, one batch or several", inputs),
                "PATH"),
      described(
          text(o.input_from), "input_from", "--input-from",
          fmt::format("{} from a folder of JPEG or PNG images (default: photographs that strata ships, for images)",
                      inputs),
          "PATH"),
      described(positive(o.max_megapixels), "max_megapixels", "--max-megapixels",
                "largest image that --input-from may hold (default: 100)"),
      described(positive(o.max_expansion), "max_expansion", "--max-expansion",
                "how many times its size a .pt, .pt2 or .npz file may unpack to, if that is above 64 MB (default: 20)"),
      described(flag(o.synthetic), "synthetic", "--synthetic", "random inputs instead of photographs"),
      described(text(o.weights), "weights", "--weights",
                "your weights: .safetensors, or .pt that loads without pickled code (default: the model's own)",
                "PATH"),
      described(whole(o.seed, 0), "seed", "--seed", "of the weights, if they are not yours, and of synthetic inputs")};
}

Members members_of_capture(plan::Options& o) {
  return {fresh_of(o), described(seconds(o.timeout_s), "timeout_s", "--timeout",
                                 "longest time that building and capturing the network may take, as 60s or 2m "
                                 "(default: 1h)")};
}

Member member_of_single_batch(std::vector<int>& batches) {
  return described(whole(batches, 1, plan::largest_batch), "batch", "--batch", "batch size (default: the model's own)");
}

Member member_of_python(std::string& python) {
  return described(text(python), "python", "--python",
                   "your interpreter with PyTorch 2.11 or newer (default: STRATA_PYTHON, else strata's own)", "PATH");
}

Member member_of_environments(std::vector<plan::NamedPython>& named) {
  return described(environments(named), "environments", "--env",
                   "an environment by name and interpreter, as old=/path/venv/bin/python, again for each more: levels "
                   "that need PyTorch take part once in each, the network is captured in the first",
                   "NAME=PATH");
}

Member member_of_levels(std::vector<std::string>& levels, const std::string& help) {
  return described(words(levels), "levels", "--levels", help, "LEVEL[,LEVEL...]");
}

Member member_of_device(std::string& device, const char* what) {
  return described(choice(device, {"cpu", "cuda"}), "device", "--device", fmt::format("where {}", what));
}

Member member_of_data_dir(std::string& folder) {
  return described(text(folder), "data_dir", "--data-dir",
                   "the folder of data sets (default: STRATA_DATA, else strata/data in the XDG data folder)", "DIR");
}

Member member_of_skip_bad(bool& skip) {
  return described(flag(skip), "skip_bad", "--skip-bad",
                   "leave out images of a data set that cannot be read, and count them");
}

Members members_of(CompareRequest& request) {
  return comparison(request, "measured time of a case, all levels together, as 60s (default: the preset's)");
}

Members members_of(SweepRequest& request) {
  auto all = comparison(request,
                        "time of the whole sweep, as 40m: shared equally by the points that are left, corners first "
                        "(default: the preset's measured time for each point)");
  add(all,
      {described(seconds(request.point_time_s), "point_time_s", "--point-time",
                 "measured time of every point, as 10s (default: its share of the budget, else the preset's)"),
       described(flag(request.full_proof), "full_proof", "--full-proof",
                 "prove every point as `compare` does, not the corners alone: slower, the proof of a point is then "
                 "complete"),
       described(text(request.find_batch), "find_batch", "--find-batch",
                 "search for a batch by doubling and bisecting instead of measuring a list: throughput, memory, "
                 "utilisation, or p99=20ms; --batch LOW..HIGH*2 gives the range (default: 1 and 4096)",
                 "RULE"),
       described(flag(request.retry), "retry", "--retry",
                 "also run levels at points no smaller than one at which they ran out of memory")});
  return all;
}

Members members_of(TrainRequest& request) {
  auto all = training(request);
  add(all, judged(request));
  return all;
}

Members members_of(ExportRequest& request) {
  auto& o = request.options;
  Members all{model_as_in_compare(o),
              required(described(text(request.level), "level", "--level",
                                 "the level to export: aoti, torchscript, onnxruntime, openvino", "LEVEL")),
              folder_of(request.output),
              described(flag(request.force), "force", "--force",
                        "replace a folder that an earlier export made, with all that is in it"),
              member_of_single_batch(o.batches)};
  add(all, members_of_inputs(o, "the test's inputs"));
  add(all, {described(threads(o.threads), "threads", "--threads", "threads of the program (default: physical cores)"),
            member_of_device(o.device, "the program runs"),
            described(text(o.precision), "precision", "--precision", "fp32 (strict float32) is all there is", "{fp32}"),
            weight_sets_of(o, "as in compare"), member_of_python(request.python)});
  add(all, members_of_capture(o));
  return all;
}

Members members_of(GenerateRequest& request) {
  auto& o = request.options;
  Members all{
      model_as_in_compare(o),
      folder_of(request.output),
      described(choice(request.target, generate::targets()), "target", "--target",
                "the library that the program calls; cuda: cuDNN and cuBLAS; libtorch: one call of ATen for each "
                "operation"),
      described(text(o.precision), "precision", "--precision",
                "fp32; bf16: bfloat16 with sums in float32; amp-bf16: the same with the parameters of a training "
                "step in float32; tf32: of --target cuda. For cuda all but fp32 need a GPU here, to know what eager's "
                "errors are in the mode",
                "{fp32,tf32,bf16,amp-bf16}"),
      described(flag(request.tune), "tune", "--tune",
                "time the kernels that can run each layer, on this machine, and use the fastest (once; cached)"),
      described(flag(request.train), "train", "--train",
                "a training step: forward, loss, gradients and SGD, Adam or AdamW"),
      described(text(request.memory_budget), "memory_budget", "--memory-budget",
                "the most that activations and gradients may take, as 200MB or 70%; what does not fit is computed "
                "again (default: none)",
                "BYTES"),
      described(text(o.loss), "loss", "--loss", "of the training step, as in compare", "LOSS|FILE.py:FUNCTION"),
      described(positive(request.clip_norm), "clip_norm", "--clip-norm",
                "of the training step: clip gradients to this norm of all together (default: none)", "NORM"),
      member_of_single_batch(o.batches)};
  add(all, members_of_inputs(o, "the reference's inputs"));
  add(all, {described(threads(o.threads), "threads", "--threads",
                      "of the capture, and of the program where none are asked for (default: physical cores; the "
                      "program: as OpenMP or LibTorch says)"),
            member_of_python(request.python)});
  add(all, members_of_capture(o));
  return all;
}

Members members_of(SuiteRequest& request) {
  return {required(described(text(request.suite), "suite", "",
                             "a suite's file (docs/suites.md), or the name of one in suites/")),
          described(text(request.model), "model", "--model",
                    "only entries whose model has this in its name (default: all)", "MODEL"),
          scale_of(request.scale),
          member_of_data_dir(request.data_dir),
          member_of_python(request.python),
          name_of(request.name)};
}

Members members_of(ShowRequest& request) {
  return {described(text(request.run), "run", "", "the run's id, the beginning of it, its name, or last")};
}

Members members_of(RunsRequest& request) {
  return {described(whole(request.limit, 0, 1'000'000'000), "limit", "--limit", "how many (0: all)"),
          described(text(request.name), "name", "--name", "only runs whose name has this in it (default: all)", "NAME"),
          described(text(request.model), "model", "--model",
                    "only runs with a case whose model has this in its name (default: all)", "MODEL"),
          described(text(request.since), "since", "--since",
                    "only runs that started on this day or later, as 2026-11-27 (default: all)", "DATE")};
}

Members members_of(DiffRequest& request) {
  return {
      required(described(text(request.before), "before", "", "the earlier run's id, a beginning of it, or its name")),
      required(described(text(request.after), "after", "", "the later run's, or last")),
      described(share(request.fail_above, true), "fail_above", "--fail-above",
                "slower by more than this share is a regression", "SHARE")};
}

Members members_of(DataRequest& r) {
  const auto action = r.action;
  Members all{described(choice(r.action, {"list", "info", "verify", "fetch", "show"}), "action", "", "what is done")};
  if (action != "list")
    all.push_back(
        required(described(text(r.name), "name", "",
                           fmt::format("set, as `strata data list` names it{}",
                                       action == "fetch" ? "" : ", or a folder of images, with a slash in its name"),
                           "NAME")));
  all.push_back(member_of_data_dir(r.data_dir));
  if (action == "fetch")
    all.push_back(described(text(r.from), "from", "--from",
                            "another place with files of the same names: https://, http:// or file://", "URL"));
  if (action == "list" || action == "fetch") return all;
  add(all, {described(whole(r.size, 1, kMostPixels), "size", "--size",
                      "pixels of a side, where images differ in size (VOC, folders)"),
            described(choice(r.decode, {"full", "scaled"}), "decode", "--decode",
                      "scaled: JPEGs at the smallest fraction of their size that does; faster, other pixels"),
            described(flag(r.partial), "partial", "--partial", "accept files with fewer records than the publisher's"),
            member_of_skip_bad(r.skip_bad),
            described(threads(r.threads), "threads", "--threads", "that read (default: one for each processor)")});
  if (action == "verify")
    all.push_back(described(flag(r.again), "again", "--again", "read it even if the cache is good"));
  if (action == "show")
    add(all, {described(choice(r.split, {"train", "test"}), "split", "--split", "whose images"),
              described(whole(r.count, 1, kMostShown), "count", "--count", "images"),
              output_of(r.output, "the page (default: NAME.html)", "FILE")});
  return all;
}

Members members_of(Request& request) {
  return std::visit([](auto& asked) { return members_of(asked); }, request);
}

}  // namespace strata::requests
