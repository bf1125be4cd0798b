// SPDX-License-Identifier: Apache-2.0
// The Dockerfile's template itself is followed in tests/levels/test_images.py.
#include "common/container_image.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace strata {
namespace {

const std::string text =
    "FROM python:@python@\nRUN apt @tools@.\nRUN pip @packages@\n@choices@RUN @build@\n@system@CMD [@arguments@]\n";

TEST(container_image, pins_what_is_known_and_leaves_out_what_is_not_needed) {
  const auto filled = dockerfile(text, {.verb = "export",
                                        .python = "3.11.7",
                                        .packages = {{"numpy", ""}, {"onnxruntime", "1.31.1"}},
                                        .build = "cmake .",
                                        .test = "ctest",
                                        .program = {"/network/serve"},
                                        .arguments = {"--check"}});
  EXPECT_EQ(filled, "FROM python:3.11\nRUN apt .\nRUN pip numpy onnxruntime==1.31.1\nRUN cmake .\nCMD [\"--check\"]\n");
}

TEST(container_image, takes_the_newest_python_where_none_is_known) {
  EXPECT_EQ(dockerfile("@python@", {}), "3");
  EXPECT_EQ(dockerfile("@python@", {.python = "4.0"}), "4.0");
}

TEST(container_image, quotes_words_for_the_shell_and_for_json) {
  const auto filled = dockerfile(text, {.python = "3.14.0rc1",
                                        .packages = {{"a", "1;reboot"}},
                                        .build = "true",
                                        .arguments = {"a \"b\"", "c"},
                                        .tools = {"libx-dev"},
                                        .libraries = {"libx", "liby"},
                                        .choices = "ARG X=ON\n"});
  EXPECT_THAT(filled, testing::HasSubstr("FROM python:3.14\n"));
  EXPECT_THAT(filled, testing::HasSubstr("pip 'a==1;reboot'\nARG X=ON\nRUN true\nRUN apt-get"));
  EXPECT_THAT(filled, testing::HasSubstr(" libx liby && rm"));
  EXPECT_THAT(filled, testing::HasSubstr("CMD [\"a \\\"b\\\"\", \"c\"]"));
}

}  // namespace
}  // namespace strata
