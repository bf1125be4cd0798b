// SPDX-License-Identifier: Apache-2.0
#include "level/line_count.hpp"

#include <gmock/gmock.h>

#include <fstream>

#include "common/scratch_folder.hpp"

namespace strata::level {
namespace {

namespace fs = std::filesystem;

struct Lines : testing::Test {
  const ScratchFolder scratch{"lines"};
  const fs::path folder = scratch.path();
  std::optional<int> of(const std::string& name, const std::string& text) {
    std::ofstream(folder / name) << text;
    return code_lines(folder / name);
  }
};

TEST_F(Lines, counts_python_without_comments_docstrings_and_blank_lines) {
  EXPECT_EQ(
      of("a.py",
         "# head\n\"\"\"one line\"\"\"\n\nx = 1  # kept\n\"\"\"three\nmore\n\"\"\"\n   \n    y = \"\"\"text\"\"\"\n"),
      2);
}

TEST_F(Lines, counts_cpp_without_comments_and_blank_lines) {
  EXPECT_EQ(of("a.cpp",
               "// head\n/* one */\n/* two\n   lines */\nint x;  // kept\n\n/* before */ int y;\n/* long\n*/ int "
               "z;\n#include <map>\n"),
            4);
}

TEST_F(Lines, counts_cmake) {
  EXPECT_EQ(of("CMakeLists.txt", "# head\nproject(x)\n\n  # more\nadd_library(x)"), 2);
}

TEST_F(Lines, knows_no_number_for_a_file_that_is_not_there) {
  EXPECT_EQ(code_lines(folder / "none.py"), std::nullopt);
}

TEST_F(Lines, takes_the_files_of_the_model_and_refuses_one_that_is_missing) {
  of("all.py", "a\nb\n");
  of("resnet.cpp", "a\n");
  Level level;
  level.id = "mine";
  level.folder = folder;
  level.to_maintain = {"{level}/all.py", "{level}/resnet.cpp if resnet", "{level}/none.cpp if vit"};
  const auto files = to_maintain(level, {}, "resnet50");
  ASSERT_TRUE(files) << files.error().what;
  ASSERT_EQ(files->size(), 2U);
  EXPECT_EQ((*files)[0].lines, 2);
  EXPECT_EQ((*files)[1].name, "resnet.cpp");
  const auto missing = to_maintain(level, {}, "vit_b_16");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().what, testing::HasSubstr("none.cpp"));
}

TEST_F(Lines, finds_every_file_that_a_shipped_level_names) {
  const fs::path root = STRATA_SOURCE_DIR;
  const auto found = discover({root / "levels"});
  EXPECT_GE(found.levels.size(), 7U);
  for (const auto& level : found.levels)
    for (const char* model : {"resnet50", "mnist_convnet"}) {
      const auto files = to_maintain(level, {"", "", "", root.string()}, model);
      EXPECT_TRUE(files) << files.error().what;
    }
}

}  // namespace
}  // namespace strata::level
