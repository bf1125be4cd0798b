// SPDX-License-Identifier: Apache-2.0
// A case: the key that is of the question alone, the id that tells different questions apart, JSON there and back.
#include "core/case.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "core/bundle_info.hpp"

namespace strata::core {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

Case resnet() {
  return {.model = "resnet50", .batch = 8, .inputs = {{.name = "arg0", .shape = {8, 3, 224, 224}}}, .threads = 2};
}

Case trained() {
  auto question = resnet();
  question.mode = Mode::train;
  question.recipe = Recipe();
  return question;
}

// Everything that makes another question, one at a time.
const std::vector<std::pair<const char*, std::function<void(Case&)>>> changes{
    {"model", [](Case& c) { c.model = "resnet18"; }},
    {"mode", [](Case& c) { c.mode = Mode::infer, c.recipe.reset(); }},
    {"batch", [](Case& c) { c.batch = c.inputs[0].shape[0] = 4; }},
    {"height", [](Case& c) { c.inputs[0].shape[2] = 96; }},
    {"type of an input", [](Case& c) { c.inputs[0].dtype = "float16"; }},
    {"range of an input", [](Case& c) { c.inputs[0].low = 0, c.inputs[0].high = 1; }},
    {"another input",
     [](Case& c) {
       c.inputs.push_back({.name = "mask", .keyword = true, .shape = {8, 12}});
     }},
    {"precision", [](Case& c) { c.precision = Precision::amp_bf16; }},
    {"device", [](Case& c) { c.device = Device::cuda; }},
    {"threads", [](Case& c) { c.threads = 24; }},
    {"learning rate", [](Case& c) { c.recipe->optimiser.lr = 0.1; }},
    {"another learning rate", [](Case& c) { c.recipe->optimiser.lr = 0.2; }},
    {"momentum", [](Case& c) { std::get<Sgd>(c.recipe->optimiser.rule).momentum = 0; }},
    {"nesterov", [](Case& c) { std::get<Sgd>(c.recipe->optimiser.rule).nesterov = true; }},
    {"Adam", [](Case& c) { c.recipe->optimiser = *usual_optimiser("adam"); }},
    {"AdamW", [](Case& c) { c.recipe->optimiser = *usual_optimiser("adamw"); }},
    {"clipping", [](Case& c) { c.recipe->optimiser.clip_norm = 1; }},
    {"Adam with AdamW's decay", [](Case& c) { (c.recipe->optimiser = *usual_optimiser("adam")).weight_decay = 0.01; }},
    {"another beta1", [](Case& c) { (c.recipe->optimiser = *usual_optimiser("adam")).rule = Adam{.beta1 = 0.8}; }},
    {"another beta2", [](Case& c) { (c.recipe->optimiser = *usual_optimiser("adam")).rule = Adam{.beta2 = 0.99}; }},
    {"another eps", [](Case& c) { (c.recipe->optimiser = *usual_optimiser("adam")).rule = Adam{.eps = 1e-6}; }},
    {"schedule", [](Case& c) { c.recipe->optimiser.schedule = Schedule{.steps = 30, .gamma = 0.1}; }},
    {"another schedule",
     [](Case& c) {
       c.recipe->optimiser.schedule = Schedule{Schedule::Kind::cosine, 30};
     }},
    {"loss", [](Case& c) { c.recipe->loss = "nll"; }},
    {"a whole training", [](Case& c) { c.recipe->training = Training(); }},
    {"epochs", [](Case& c) { c.recipe->training = Training{.epochs = 3}; }},
    {"initial weights", [](Case& c) { c.recipe->training = Training{.init = "xavier"}; }},
    {"augmentation", [](Case& c) { c.recipe->training = Training{.augment = "flip"}; }},
    {"fewer images", [](Case& c) { c.recipe->training = Training{.most_images = 100}; }},
    {"images", [](Case& c) { c.recipe->training = Training{.data_sha256 = std::string(64, 'a')}; }},
    {"other images", [](Case& c) { c.recipe->training = Training{.data_sha256 = std::string(64, 'b')}; }},
    {"data", [](Case& c) { c.data = "synthetic"; }},
    {"weights", [](Case& c) { c.weights = "mine.safetensors"; }},
    {"seed", [](Case& c) { c.seed = 1; }}};

TEST(Case, of_another_question_has_another_key_and_another_id) {
  std::set<std::string> keys{key_of(trained())}, ids{trained().id()};
  for (const auto& [what, change] : changes) {
    auto other = trained();
    change(other);
    EXPECT_TRUE(keys.insert(key_of(other)).second) << what << ": " << other.canonical();
    EXPECT_TRUE(ids.insert(other.id()).second) << what << ": " << other.id();
  }
}

TEST(Case, has_the_same_key_whatever_was_asked_beside_the_question) {
  auto open = resnet();
  open.open_batch = OpenBatch{1, 32, {1, 2, 4}};
  EXPECT_EQ(key_of(open), key_of(resnet()));
  EXPECT_EQ(key_of(resnet()), "b985e6d421188591") << "keys of stored runs would be lost: " << resnet().canonical();
}

TEST(Case, is_read_by_people_with_what_is_not_the_default_at_the_end) {
  EXPECT_EQ(resnet().id(), "resnet50/infer/b8/3x224x224/fp32/cpu/t2");
  auto text = resnet();
  text.model = "net:build";
  text.inputs = {{.name = "ids", .dtype = "int64", .keyword = true, .shape = {8, 128}, .low = 0, .high = 30521},
                 {.name = "scale", .shape = {}}};
  text.weights = "w.pt";
  text.seed = 3;
  EXPECT_EQ(text.id(), "net:build/infer/b8/int64:128:0..30521+1/fp32/cpu/t2/weights:w.pt/seed3");
  auto step = trained();
  step.recipe->optimiser.lr = 0.1;
  step.recipe->loss = "nll";
  EXPECT_EQ(step.id(), "resnet50/train/b8/3x224x224/fp32/cpu/t2/sgd:lr=0.1/nll");
}

TEST(Case, of_a_training_by_sgd_is_written_as_it_was_before_there_were_other_optimisers) {
  EXPECT_THAT(trained().canonical(),
              HasSubstr("\noptimiser sgd lr=0.01 momentum=0.9 dampening=0 weight_decay=0.0001 nesterov=false "
                        "schedule=none\nloss cross_entropy\n"));
  EXPECT_EQ(key_of(trained()), "62b7de20383a980a") << "keys of stored runs would be lost: " << trained().canonical();
  EXPECT_EQ(trained().id(), "resnet50/train/b8/3x224x224/fp32/cpu/t2");
  EXPECT_EQ(to_json(trained())["optimiser"], (json{{"name", "sgd"},
                                                   {"lr", 0.01},
                                                   {"momentum", 0.9},
                                                   {"dampening", 0.0},
                                                   {"weight_decay", 0.0001},
                                                   {"clip_norm", 0.0},
                                                   {"nesterov", false},
                                                   {"schedule", nullptr}}));
}

TEST(Case, of_a_training_by_adam_says_its_name_and_every_setting_in_the_key) {
  auto question = trained();
  question.recipe->optimiser = *usual_optimiser("adamw");
  EXPECT_EQ(question.id(), "resnet50/train/b8/3x224x224/fp32/cpu/t2/adamw");
  EXPECT_THAT(question.canonical(), HasSubstr("\noptimiser adamw lr=0.001 beta1=0.9 beta2=0.999 eps=1e-08 "
                                              "weight_decay=0.01 schedule=none\n"));
  question.recipe->optimiser.lr = 0.01;
  std::get<Adam>(question.recipe->optimiser.rule).beta2 = 0.99;
  EXPECT_EQ(words(question.recipe->optimiser), "adamw:beta2=0.99,lr=0.01");
  question.recipe->optimiser.clip_norm = 0.5;
  EXPECT_EQ(words(question.recipe->optimiser), "adamw:beta2=0.99,clip_norm=0.5,lr=0.01");
  EXPECT_THAT(question.canonical(), HasSubstr(" schedule=none clip_norm=0.5\n"));
  EXPECT_EQ(*read_optimiser(to_json(question.recipe->optimiser), "optimiser"), question.recipe->optimiser);
  EXPECT_EQ(*read_optimiser({{"name", "adam"}}, "optimiser"), *usual_optimiser("adam"));
}

TEST(Case, names_its_axes_height_and_width_too) {
  std::vector<std::string> names;
  for (const auto& [name, value] : resnet().axes()) names.push_back(name);
  EXPECT_THAT(names, ::testing::ElementsAre("model", "mode", "batch", "height", "width", "input", "precision", "device",
                                            "threads", "data", "weights", "seed"));
  EXPECT_EQ(resnet().image_size(), std::pair(std::int64_t{224}, std::int64_t{224}));
  auto rows = resnet();
  rows.inputs[0].shape = {8, 16};
  EXPECT_EQ(rows.image_size(), std::nullopt);
}

TEST(Case, without_its_batch_is_that_of_any_other_batch_and_of_no_other_size) {
  auto small = resnet(), low = resnet();
  small.batch = small.inputs[0].shape[0] = 1;
  low.inputs[0].shape[2] = 96;
  EXPECT_EQ(small.without_batch(), resnet().without_batch());
  EXPECT_NE(low.without_batch(), resnet().without_batch());
}

TEST(Case, comes_back_from_json_as_it_was) {
  for (const auto& [what, change] : changes) {
    auto question = trained();
    change(question);
    const auto again = read_case(to_json(question), "case");
    ASSERT_TRUE(again) << what << ": " << again.error().what;
    EXPECT_EQ(*again, question) << what;
  }
}

json captured() {
  return {{"model", {{"name", "net:build"}}},
          {"case",
           {{"model", "/home/me/net.py:build"},
            {"mode", "train"},
            {"batch", 4},
            {"inputs", {{{"name", "arg0"}, {"dtype", "float32"}, {"shape", {4, 3, 8, 8}}, {"low", nullptr}}}},
            {"precision", "fp32"},
            {"threads", 2},
            {"optimiser", {{"name", "sgd"}, {"lr", 0.5}, {"schedule", {{"name", "cosine"}, {"steps", 10}}}}},
            {"loss", "nll"},
            {"weights", "/home/me/w.pt"},
            {"input_from", "/home/me/photos"},
            {"weights_label", "w.pt:123"},
            {"ring", 4}}}};
}

TEST(Case, of_a_captured_network_has_the_same_key_in_every_folder_and_with_every_content) {
  const auto here = captured_case(captured(), "bundle.json");
  ASSERT_TRUE(here) << here.error().what;
  EXPECT_EQ(here->id(),
            "net:build/train/b4/3x8x8/fp32/cpu/t2/sgd:lr=0.5,schedule=cosine/10/nll/folder:photos/weights:w.pt");
  auto elsewhere = captured();
  elsewhere["case"].update({{"model", "/srv/net.py:build"},
                            {"weights", "/srv/w.pt"},
                            {"input_from", "/srv/photos"},
                            {"weights_label", "w.pt:456"},
                            {"generic_sets", 7},
                            {"ring", 2}});
  elsewhere["torch"] = "3.0";
  EXPECT_EQ(key_of(*captured_case(elsewhere, "bundle.json")), key_of(*here));
}

TEST(Case, that_is_not_as_documented_is_refused_with_the_field) {
  for (const auto& [change, words] : std::vector<std::pair<json, const char*>>{
           {{{"mode", "both"}}, "allowed is infer, train"},
           {{{"precision", 8}}, "\"precision\""},
           {{{"threads", 0}}, "\"threads\""},
           {{{"batch", "8"}}, "\"batch\""},
           {{{"inputs", {{{"shape", {1.5}}}}}}, "inputs[0]"},
           {{{"optimiser", {{"name", "adan"}}}}, "sgd, adam, adamw"},
           {{{"optimiser", {{"name", "adam"}, {"amsgrad", true}}}}, "no such setting"},
           {{{"optimiser", {{"name", "adam"}, {"beta2", 2}}}}, "\"beta2\""},
           {{{"optimiser", {{"schedule", {{"name", "step"}, {"gamma", 0.1}}}}}}, "\"every\""}}) {
    auto info = captured();
    info["case"].update(change);
    const auto question = captured_case(info, "b.json");
    ASSERT_FALSE(question) << change;
    EXPECT_THAT(question.error().what, ::testing::AllOf(HasSubstr("b.json: case"), HasSubstr(words))) << change;
  }
}

TEST(Schedule, steps_and_cosine_are_as_documented) {
  const Optimiser step{.lr = 0.1, .schedule = Schedule{.steps = 30, .gamma = 0.1}},
      cosine{.lr = 0.1, .schedule = Schedule{Schedule::Kind::cosine, 100}};
  EXPECT_DOUBLE_EQ(learning_rate({.lr = 0.1}, 1000), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(step, 29), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate(step, 30), 0.01);
  EXPECT_NEAR(learning_rate(step, 90), 1e-4, 1e-12);
  EXPECT_DOUBLE_EQ(learning_rate(cosine, 0), 0.1);
  EXPECT_NEAR(learning_rate(cosine, 50), 0.05, 1e-12);
  EXPECT_NEAR(learning_rate(cosine, 100), 0, 1e-12);
}

}  // namespace
}  // namespace strata::core
