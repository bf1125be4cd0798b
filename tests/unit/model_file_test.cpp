// SPDX-License-Identifier: Apache-2.0
// Which kind of network a name is, told by the name alone.
#include "plan/model_file.hpp"

#include <gtest/gtest.h>

#include "engine/prepare.hpp"
#include "plan/bundle.hpp"

namespace strata::plan {
namespace {

TEST(ModelNames, of_a_package_have_its_name_in_front) {
  for (const char* model : {"timm:convnext_tiny?in_chans=1", "torchvision:resnet18", "hf:BertModel?a=1&b=x/y.py"})
    EXPECT_TRUE(is_of_package(model)) << model;
  for (const char* model : {"resnet50", "net.py:build", "/nets/net.py:build", "nets/net.py:build", "timm:", ":build",
                            "a.onnx", "C:/nets", ""})
    EXPECT_FALSE(is_of_package(model)) << model;
}

TEST(ModelNames, of_a_package_are_captured_by_what_was_read_as_a_user_s_own_are) {
  EXPECT_TRUE(is_users("timm:convnext_tiny"));
  EXPECT_TRUE(is_users("/nets/net.py:build"));
  EXPECT_FALSE(is_users("resnet50"));
}

TEST(ModelNames, of_a_package_name_the_case_whole) {
  core::CaseSpec spec{.model = "hf:BertModel?hidden_act=a:b"};
  EXPECT_EQ(engine::provisional_bundle(spec).question.model, spec.model);
  spec.model = "/nets/net.py:build";
  EXPECT_EQ(engine::provisional_bundle(spec).question.model, "net:build");
}

}  // namespace
}  // namespace strata::plan
