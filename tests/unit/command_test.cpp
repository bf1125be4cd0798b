// SPDX-License-Identifier: Apache-2.0
#include "plan/command.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "plan/options.hpp"

namespace strata::plan {
namespace {

TEST(CommandTest, says_a_case_in_the_words_that_make_it) {
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
  EXPECT_EQ(case_words(specs->front()),
            "resnet50 --batch 8 --input float32:1x3x64x64 --input ids=int64:1x128:0..30521 --input "
            "mask=float32:1x128:1..1 --input float64:2:-0.5..2.25 --synthetic --threads 2 --device cuda --seed 3");
  options.inputs = {"float32:1x3x64x64", "ids=int64:1x128:0..30521", "mask=float32:1x128:1..1", "float64:2:-0.5..2.25"};
  EXPECT_EQ(*specs, *specs_of(options));
}

TEST(CommandTest, says_a_training_case_with_all_that_is_not_the_default) {
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
    EXPECT_EQ(case_words(specs->front()),
              fmt::format("mnist_convnet --mode train{} --loss nll --threads 1 --weight-sets 5", option));
  }
}

TEST(CommandTest, repeats_a_run_with_what_is_not_the_default) {
  Options options;
  EXPECT_EQ(run_words(options), "");
  options.preset = "quick";
  options.budget_s = 3;
  options.restarts = 1;
  options.order_seed = 7;
  options.memory_limit_gib = 0.5;
  options.eval = "my score.py:score";
  EXPECT_EQ(run_words(options),
            " --preset quick --budget 3s --restarts 1 --order-seed 7 --memory-limit 0.5 --eval 'my score.py:score'");
}

TEST(CommandTest, a_score_needs_mode_infer_wherever_it_stands) {
  Options options;
  options.model = "mnist_convnet";
  options.eval = "score.py:score";
  for (const char* mode : {"infer", "infer,train", "train,infer"}) {
    options.mode = mode;
    EXPECT_TRUE(specs_of(options)) << mode;
  }
  options.mode = "train";
  EXPECT_FALSE(specs_of(options));
}

TEST(CommandTest, exports_into_a_folder_whose_name_no_shell_reads_and_keeps_the_store_and_the_interpreter) {
  const nlohmann::json spec{{"model", "/my nets/net.py:build"}, {"threads", 1}};
  EXPECT_EQ(export_command(spec, "net:build", "aoti",
                           "./strata compare x --store '/a b/c.db' --python /usr/bin/python3 --budget 1s"),
            "./strata export '/my nets/net.py:build' --threads 1 --level aoti -o net-build-aoti --store '/a b/c.db' "
            "--python /usr/bin/python3");
  EXPECT_EQ(export_command(spec, "n", "aoti", "./strata compare x --store"),
            "./strata export '/my nets/net.py:build' --threads 1 --level aoti -o n-aoti");
}

TEST(CommandTest, generates_the_program_of_a_level_with_the_cases_own_options) {
  const nlohmann::json spec{{"model", "mnist_convnet"}, {"batch", 8}, {"threads", 2}, {"synthetic", true}, {"seed", 3}};
  EXPECT_EQ(
      generate_command(spec, "mnist_convnet", {"static", "onednn", ""}, "./strata compare x --python /p --store s"),
      "./strata generate mnist_convnet --batch 8 --synthetic --threads 2 --seed 3 -o mnist_convnet-static --python /p");
  EXPECT_EQ(generate_command({{"model", "m"}}, "m", {"libtorch", "libtorch", ""}, ""),
            "./strata generate m --target libtorch -o m-libtorch");
  EXPECT_EQ(generate_command({{"model", "m"}}, "m", {"static", "onednn", "--tune"}, ""),
            "./strata generate m --tune -o m-static");
  const nlohmann::json training{{"model", "m"}, {"mode", "train"}, {"loss", "nll"}, {"precision", "amp-bf16"}};
  EXPECT_EQ(generate_command(training, "m", {"static", "onednn", ""}, ""),
            "./strata generate m --precision amp-bf16 --train --loss nll -o m-static");
}

TEST(CommandTest, generates_nothing_where_generate_would_refuse) {
  EXPECT_EQ(generate_command({{"model", "m"}, {"mode", "train"}}, "m", {"libtorch", "libtorch", ""}, ""), "");
  EXPECT_EQ(generate_command({{"model", "m"}, {"precision", "tf32"}}, "m", {"static", "onednn", ""}, ""), "");
  EXPECT_EQ(generate_command({{"model", "m"}}, "m", {"static", "", ""}, ""), "");
}

TEST(CommandTest, sets_an_option_of_a_command_once) {
  EXPECT_EQ(with_option("./strata compare m", "--threads", "1"), "./strata compare m --threads 1");
  EXPECT_EQ(with_option("./strata compare m --threads 2 --budget 3s", "--threads", "1"),
            "./strata compare m --threads 1 --budget 3s");
  EXPECT_EQ(with_option("./strata compare m --threads=16 --aa", "--threads", "1"),
            "./strata compare m --threads 1 --aa");
}

TEST(CommandTest, quotes_a_word_only_where_a_shell_needs_it) {
  EXPECT_EQ(quoted("a-b_1.2/c:d"), "a-b_1.2/c:d");
  EXPECT_EQ(quoted(""), "''");
  EXPECT_EQ(quoted("it's"), "'it'\\''s'");
}

}  // namespace
}  // namespace strata::plan
