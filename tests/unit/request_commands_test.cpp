// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plan/options.hpp"
#include "requests/commands.hpp"

namespace strata::requests {
namespace {

using plan::Options;
using plan::specs_of;

std::string compared(const core::CaseSpec& spec) {
  return command_of(CompareRequest{.options = options_of(spec), .python = {}});
}

TEST(request_commands, say_a_case_in_the_words_that_make_it) {
  Options options;
  options.model = "resnet50";
  options.batches = {8};
  options.threads = 2;
  options.seed = 3;
  options.synthetic = true;
  options.device = "cuda";
  options.inputs = {"1x3x64x64", "ids=int64:1x128:0..30521", "mask=float32:1x128:1", "float64:2:-0.5..2.25"};
  const auto specs = specs_of(options);
  ASSERT_TRUE(specs) << specs.error().what;
  EXPECT_EQ(compared(specs->front()),
            "./strata compare resnet50 --batch 8 --input float32:1x3x64x64 --input ids=int64:1x128:0..30521 --input "
            "mask=float32:1x128:1..1 --input float64:2:-0.5..2.25 --synthetic --seed 3 --threads 2 --device cuda");
  options.inputs = {"float32:1x3x64x64", "ids=int64:1x128:0..30521", "mask=float32:1x128:1..1", "float64:2:-0.5..2.25"};
  EXPECT_EQ(*specs, *specs_of(options));
}

TEST(request_commands, say_a_training_case_with_all_that_is_not_the_default) {
  for (const std::string optimiser :
       {"", "sgd:lr=0.1,nesterov=true,schedule=step/30/0.1", "sgd:momentum=0,schedule=cosine/100", "adam",
        "adamw:beta1=0.8,eps=1e-06,lr=0.01,schedule=step/3/0.5,weight_decay=0"}) {
    Options options;
    options.model = "mnist_convnet";
    options.mode = "train";
    options.threads = 1;
    options.optimiser = optimiser;
    options.loss = "nll";
    options.weight_sets = 5;
    const auto specs = specs_of(options);
    ASSERT_TRUE(specs) << specs.error().what;
    const auto option = optimiser.empty() ? "" : " --optimiser " + optimiser;
    EXPECT_EQ(
        compared(specs->front()),
        fmt::format("./strata compare mnist_convnet --threads 1 --mode train{} --loss nll --weight-sets 5", option));
  }
}

TEST(request_commands, repeat_a_case_as_it_was_asked_for_at_some_levels_alone) {
  Options options;
  options.preset = "quick";
  options.budget_s = 3;
  options.restarts = 1;
  options.order_seed = 7;
  options.memory_limit_gib = 0.5;
  options.eval = "my score.py:score";
  options.levels = {"eager", "static", "onednn"};
  options.batches = {1, 8};
  options.name = "a name";
  options.tuned = options.aa = true;
  EXPECT_EQ(command_of(of_case(options, {.model = "m", .batch = 8}, {"eager", "static"})),
            "./strata compare m --batch 8 --levels eager,static --threads 1 --eval 'my score.py:score' --preset quick "
            "--restarts 1 "
            "--budget 3s --order-seed 7 --memory-limit 0.5");
}

TEST(request_commands, say_what_a_run_was_asked_where_it_says_so) {
  SweepRequest sweep;
  sweep.options.model = "m";
  sweep.retry = true;
  const auto read = request_of_run({.request = to_json(sweep)});
  ASSERT_TRUE(read);
  EXPECT_EQ(to_json(*read), to_json(sweep));
  EXPECT_FALSE(request_of_run({}));
  EXPECT_FALSE(request_of_run({.request = {{"verb", "compare"}, {"version", 99}}}));
}

TEST(request_commands, export_into_a_folder_whose_name_no_shell_reads_and_keep_the_store_and_the_interpreter) {
  const core::CaseSpec spec{.model = "/my nets/net.py:build"};
  EXPECT_EQ(export_command(spec, "net:build", "aoti", {"/a b/c.db", "/usr/bin/python3"}),
            "./strata export '/my nets/net.py:build' --level aoti -o net-build-aoti --threads 1 --python "
            "/usr/bin/python3 --store '/a b/c.db'");
  EXPECT_EQ(export_command(spec, "n", "aoti"),
            "./strata export '/my nets/net.py:build' --level aoti -o n-aoti --threads 1");
}

TEST(request_commands, generate_the_program_of_a_level_with_the_cases_own_options) {
  const core::CaseSpec spec{.model = "mnist_convnet", .batch = 8, .threads = 2, .synthetic = true, .seed = 3};
  EXPECT_EQ(generate_command(spec, "mnist_convnet", {"static", "onednn", ""}, "/p"),
            "./strata generate mnist_convnet -o mnist_convnet-static --batch 8 --synthetic --seed 3 --threads 2 "
            "--python /p");
  EXPECT_EQ(generate_command({.model = "m"}, "m", {"libtorch", "libtorch", ""}),
            "./strata generate m -o m-libtorch --target libtorch --threads 1");
  EXPECT_EQ(generate_command({.model = "m"}, "m", {"static", "onednn", "--tune"}),
            "./strata generate m -o m-static --threads 1 --tune");
  const core::CaseSpec training{
      .model = "m", .mode = core::Mode::train, .precision = core::Precision::amp_bf16, .loss = "nll"};
  EXPECT_EQ(generate_command(training, "m", {"static", "onednn", ""}),
            "./strata generate m -o m-static --precision amp-bf16 --train --loss nll --threads 1");
}

TEST(request_commands, generate_nothing_where_generate_would_refuse) {
  EXPECT_EQ(generate_command({.model = "m", .mode = core::Mode::train}, "m", {"libtorch", "libtorch", ""}), "");
  EXPECT_EQ(generate_command({.model = "m", .precision = core::Precision::tf32}, "m", {"static", "onednn", ""}), "");
  EXPECT_EQ(generate_command({.model = "m"}, "m", {"static", "", ""}), "");
}

}  // namespace
}  // namespace strata::requests
