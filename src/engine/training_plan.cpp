// SPDX-License-Identifier: Apache-2.0
#include "engine/training_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "common/outside.hpp"
#include "common/python.hpp"
#include "common/safetensors.hpp"
#include "common/text.hpp"
#include "data/catalogue.hpp"
#include "plan/scale.hpp"
#include "probe/machine.hpp"
#include "requests/codec.hpp"
#include "stats/convergence.hpp"
#include "worker/answers.hpp"

namespace strata::engine {
namespace fs = std::filesystem;
namespace {

// --sweep-init: those that people use, and two whose deviation is no layer's.
constexpr const char* kUsualSchemes = "torch;kaiming:fan_in,relu;kaiming:fan_out,relu;xavier;normal:0.0001;normal:1";

// What only capture.initial knows, asked without loading PyTorch.
Result<void> check_schemes(const std::string& schemes) {
  const auto place = installation();
  worker::Launch launch;
  launch.argv = python_command(place.tools_python, place.root, {"-m", "capture.initial", "--scheme", schemes});
  launch.env = python_variables({place.root / "src", place.root / "sdk/python"});
  const auto ran = worker::run_to_end(launch, std::chrono::seconds(60));
  if (!ran) return fail(ran.error().what, ran.error().hint);
  const auto answer = worker::last_line(*ran);
  if (outside::flag_or(answer, "ok", false) || interrupted()) return {};
  return fail(outside::text_or(answer, "what", fmt::format("--init {}: cannot be read: {}", schemes, ran->log_tail)),
              outside::text_or(answer, "hint"), Exit::usage);
}

Result<void> read_schemes(TrainingPlan& plan) {
  for (const auto& text : split(plan.sweep_init ? kUsualSchemes : plan.init, ';')) {
    auto initial = STRATA_TRY(training::read_init(text));
    for (const auto& before : plan.initials)
      if (before.name == initial.name)
        return fail(fmt::format("--init {}: {} is named twice", plan.init, initial.name), "", Exit::usage);
    if (const auto file = initial.file.empty() ? Result<SafeTensors>() : SafeTensors::map(initial.file); !file)
      return fail(fmt::format("--init {}", file.error().what), file.error().hint, Exit::usage);
    plan.initials.push_back(std::move(initial));
  }
  if (!plan.sweep_init && plan.init != "torch") STRATA_TRY(check_schemes(plan.init));
  if (plan.initials.size() > 1 && !plan.own_repeats.empty())
    return fail("several initialisations are not split over shards", "a call for each: --init " + plan.initials[0].name,
                Exit::usage);
  return {};
}

// MLPerf's check means nothing of runs that all end at one of a few evaluations.
Result<void> check_rule(const TrainingPlan& plan) {
  if (plan.rule != "mlperf") return {};
  if (!plan.target)
    return fail("--rule mlperf counts the epochs to a target, and none is given", "add --target 95%", Exit::usage);
  if (plan.epochs < stats::kRcpFewestEvaluations)
    return fail(fmt::format("--rule mlperf: {} evaluations a repeat, one an epoch; allowed: {} or more", plan.epochs,
                            stats::kRcpFewestEvaluations),
                fmt::format("--epochs {}", stats::kRcpFewestEvaluations), Exit::usage);
  if (plan.repeats < stats::kRcpFewestRuns)
    return fail(fmt::format("--rule mlperf: {} repeat{}; allowed: {} or more", plan.repeats,
                            plan.repeats == 1 ? "" : "s", stats::kRcpFewestRuns),
                fmt::format("--repeats {}", stats::kRcpFewestRuns), Exit::usage);
  return {};
}

fs::path data_dir_of(const TrainRequest& request) {
  const auto& folder = request.options.data_dir;
  return folder.empty() ? data::default_data_dir() : fs::path(folder);
}

// Its name, and its files where they are to be read: a plan of a known set needs none.
Result<void> check_dataset(const TrainRequest& request, bool dry_run) {
  if (request.dataset == "digits") return {};
  data::ReadOptions options;
  options.data_dir = data_dir_of(request);
  const auto reader = STRATA_TRY(data::make_reader(request.dataset, options));
  if (!dry_run || data::is_folder(request.dataset)) STRATA_TRY(reader->sources());
  return {};
}

Result<void> apply_scale(TrainingPlan& plan) {
  if (plan.scale.empty()) return {};
  const auto scale = STRATA_TRY(plan::parse_scale(plan.scale));
  const auto left = plan::scaled(scale, plan.epochs, plan.repeats);
  plan.scaled = fmt::format("scaled: {} of {} epoch{}, {} of {} repeat{}", left.epochs, plan.epochs,
                            plan.epochs == 1 ? "" : "s", left.repeats, plan.repeats, plan.repeats == 1 ? "" : "s");
  plan.epochs = left.epochs;
  plan.repeats = left.repeats;
  plan.images_share = left.images;
  return {};
}

}  // namespace

Result<TrainingPlan> plan_training(const TrainRequest& request, const RunContext& context,
                                   std::vector<int> own_repeats) {
  if (request.sweep_init && request.init != TrainRequest().init)
    return fail("--init and --sweep-init exclude each other", "leave one of them out", Exit::usage);
  TrainingPlan plan;
  static_cast<TrainRequest&>(plan) = request;
  plan.own_repeats = std::move(own_repeats);
  plan.asked = requests::to_json(request);
  STRATA_TRY(apply_scale(plan));
  plan.options.mode = "train";
  plan.options.batches = {plan.batch};
  plan.options.thread_counts = {plan.threads > 0 ? plan.threads : probe::physical_cores()};
  STRATA_TRY(read_schemes(plan));
  STRATA_TRY(check_rule(plan));
  STRATA_TRY(check_dataset(plan, context.dry_run));
  return plan;
}

void drop_untrained(Prepared& ready) {
  if (!ready.setting.options.levels.empty()) return;
  std::erase_if(ready.levels, [](const level::Level& level) {
    return level.harness || std::find(level.modes.begin(), level.modes.end(), "train") == level.modes.end();
  });
}

plan::TrainingWork work_of(TrainingPlan& plan, int repeats, std::int64_t train, std::int64_t test) {
  const int trainings = repeats * static_cast<int>(plan.initials.size());
  plan::TrainingWork work{train, test, plan.batch, plan.epochs, trainings, plan.proofs};
  const auto limit = [&](std::int64_t most) {
    work.train = std::min(work.train, most);
    work.test = std::min(work.test, most);
  };
  if (plan.images > 0) limit(plan.images);
  if (plan.images_share >= 1 || work.train == 0) return work;
  const auto all = work.train;
  plan.images = plan::scaled_images(plan.images_share, all, plan.batch);
  limit(plan.images);
  plan.scaled += fmt::format(", {} of {} images", work.train, all);
  return work;
}

data::OpenOptions open_options(const TrainingPlan& plan, const fs::path& cache) {
  data::OpenOptions options;
  options.data_dir = data_dir_of(plan);
  options.cache_dir = cache;
  options.partial = plan.partial;
  options.skip_bad = plan.options.skip_bad;
  return options;
}

std::string data_name(const TrainingPlan& plan, const std::string& set) {
  return plan.partial ? set + "-partial" : set;
}

Result<data::Shape> image_shape(const nlohmann::json& inputs, const std::string& model) {
  static const auto none = nlohmann::json::object();
  const auto& input = inputs.is_array() && inputs.size() == 1 ? inputs.front() : none;
  outside::Fields reader(input, "the network's input");
  const auto shape = reader.integers("shape", 4, 1, std::numeric_limits<std::int64_t>::max());
  if (!reader.error() && outside::text_or(input, "dtype") == "float32")
    return data::Shape{shape[1], shape[2], shape[3]};
  return fail(fmt::format("{} takes no image: strata train needs one float32 input [N, C, H, W]", model),
              "compare --mode train times single steps of any network", Exit::usage);
}

}  // namespace strata::engine
