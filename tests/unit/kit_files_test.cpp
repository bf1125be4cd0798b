// SPDX-License-Identifier: Apache-2.0
// The table of the kit's files against the sources themselves.
#include "generate/kit_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>

#include "generate/folder.hpp"

namespace strata::generate {
namespace {

namespace fs = std::filesystem;
const fs::path kit = fs::path(STRATA_SOURCE_DIR) / "runtime/kit";

// Without comments.
std::string source(const std::string& name) {
  return std::regex_replace(*read_text(kit / name), std::regex("//[^\n]*"), "");
}

// Functions for a program that the text defines, or declares.
std::set<std::string> functions_in(const std::string& text, const std::string& end) {
  std::set<std::string> found;
  const std::regex head("\n(?:void|Weight) (\\w+)\\(Program& program,[^)]*\\)" + end);
  for (std::sregex_iterator at(text.begin(), text.end(), head), none; at != none; ++at) found.insert((*at)[1]);
  return found;
}

std::set<std::string> sources() {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(kit))
    if (entry.path().extension() == ".cpp") names.insert(entry.path().filename());
  return names;
}

std::map<std::string, KitFile> by_name() {
  std::map<std::string, KitFile> all;
  for (const auto& one : kit_table()) all.emplace(one.name, one);
  for (const auto& name : kit_base()) all.emplace(name, KitFile{name, {}, {}});
  return all;
}

TEST(KitFiles, the_table_has_every_source_and_every_function_of_stages_where_it_is_defined) {
  std::set<std::string> listed, known;
  for (const auto& [name, about] : by_name()) {
    listed.insert(name);
    const auto defined = functions_in(source(name), " \\{");
    // a file that every program has need not say what it defines
    if (about.functions.empty()) known.insert(defined.begin(), defined.end());
    for (const auto function : about.functions) {
      EXPECT_TRUE(defined.contains(std::string(function))) << name << " does not define " << function;
      known.insert(std::string(function));
    }
  }
  EXPECT_EQ(listed, sources());
  for (const char* header : {"operations.hpp", "training.hpp"})
    for (const auto& function : functions_in(source(header), ";"))
      EXPECT_TRUE(known.contains(function)) << function << " of " << header;
}

TEST(KitFiles, a_file_names_all_others_whose_functions_it_calls) {
  const auto all = by_name();
  for (const auto& [name, about] : all) {
    const auto text = source(name);
    for (const auto& [other, its] : all) {
      if (other == name || kit_base().contains(other)) continue;
      bool calls =
          std::regex_search(text, std::regex("#include \"(kit/)?" + fs::path(other).stem().string() + ".hpp\""));
      for (const auto function : its.functions)
        calls = calls || std::regex_search(text, std::regex("[^\\w.:]" + std::string(function) + "\\(program, "));
      if (other == "gradients.cpp") continue;  // its functions are called by stages alone
      if (calls) {
        EXPECT_THAT(about.calls, testing::Contains(std::string_view(other))) << name;
      }
    }
  }
}

TEST(KitFiles, a_program_gets_what_its_stages_call_and_no_more) {
  const auto files = kit_files(kit, "max_pool(p, {\nlinear(p, {", {"operations.hpp"});
  ASSERT_TRUE(files.has_value());
  for (const char* there : {"pooling.cpp", "move.cpp", "convolution.cpp", "post_ops.cpp", "one_pixel.cpp",
                            "program.cpp", "operations.hpp", "tensor.hpp", "convolution.hpp"})
    EXPECT_TRUE(files->contains(there)) << there;
  for (const char* absent : {"losses.cpp", "batch_norm.cpp", "gradients.cpp", "winograd.cpp", "direct.cpp",
                             "own_kernels.cpp", "fold.cpp", "winograd.hpp"})
    EXPECT_FALSE(files->contains(absent)) << absent;
  const std::regex include("#include \"(?:kit/)?([^\"]+)\"");
  const auto all = kit_files(kit, "direct_linear(p, { batch_norm_backward(p, { pool_backward(p, {", {"training.hpp"});
  for (const auto& file : *all) {
    const auto text = source(file);
    for (std::sregex_iterator at(text.begin(), text.end(), include), none; at != none; ++at)
      EXPECT_TRUE(all->contains((*at)[1])) << file << " includes " << (*at)[1];
  }
  const auto direct = kit_files(kit, "direct_linear(p, {", {"operations.hpp"});
  EXPECT_TRUE(direct->contains("direct.cpp") && direct->contains("direct.hpp") && !direct->contains("convolution.cpp"));
}

}  // namespace
}  // namespace strata::generate
