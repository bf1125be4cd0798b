// SPDX-License-Identifier: Apache-2.0
#include "common/escape.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/fill_in.hpp"
#include "common/scratch_folder.hpp"

namespace strata::escape {
namespace {

// What begins a line, ends a comment, a string, a block or a word, moves a terminal's cursor or turns text around.
const std::vector<std::string> hostile{"model.py\nexecute_process(COMMAND touch hit)",
                                       "a\r#error hit",
                                       "a\\",
                                       "a\\\nint hit;",
                                       "*/ int hit; /*",
                                       "?\?/\nint hit;",
                                       "\"; int hit; //",
                                       "\"$(touch hit)`touch hit`${HIT}\"",
                                       "]] hit [[ ]==]",
                                       "```\n# hit\n```",
                                       "` `` ``` |hit|",
                                       "<script>hit</script> [hit](x) *hit* _hit_",
                                       "it's 'hit'",
                                       "\x1b[2J\x7f\x07",
                                       "a\xe2\x80\xa8hit\xe2\x80\xae",
                                       "gr\xc3\xb6\xc3\x9f\x65 \xf0\x9f\x98\x80",
                                       "\xff\xfe\xc3(\xed\xa0\x80\xf8",
                                       "1\x01"
                                       "23 \xc3\xb6"
                                       "1",
                                       "@namespace@",
                                       "",
                                       " "};

bool is_one_printable_line(const std::string& text) {
  for (const char c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return false;
  return text.find("\xe2\x80\xa8") == std::string::npos && text.find("\xe2\x80\xae") == std::string::npos;
}

// As a C++ compiler reads the inside of a literal.
std::string read_literal(const std::string& literal) {
  std::string out;
  for (std::size_t i = 1; i + 1 < literal.size(); ++i) {
    if (literal[i] != '\\') {
      EXPECT_NE(literal[i], '"') << literal;
      out += literal[i];
    } else if (literal[i + 1] >= '0' && literal[i + 1] <= '7') {
      out += static_cast<char>(std::stoi(literal.substr(i + 1, 3), nullptr, 8));
      i += 3;
    } else {
      out += literal[++i];
    }
  }
  return out;
}

std::string output_of(const std::string& command) {
  std::string out;
  FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 4096> some{};
  for (std::size_t n = 0; (n = fread(some.data(), 1, some.size(), pipe)) > 0;) out.append(some.data(), n);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return out;
}

TEST(Escape, gives_one_line_without_control_characters_in_every_language) {
  for (const auto& text : hostile)
    for (const auto& written :
         {one_line(text), comment(text), cpp_string(text), markdown(text), markdown_code(text), shell_word(text)})
      EXPECT_TRUE(is_one_printable_line(written)) << written;
}

TEST(Escape, a_comment_cannot_be_ended_and_does_not_join_the_next_line) {
  for (const auto& text : hostile) {
    const auto written = comment(text);
    for (const char* end : {"*/", "/*", "\\", "?\?/"}) EXPECT_EQ(written.find(end), std::string::npos) << written;
  }
  EXPECT_EQ(comment("conv1 (Conv2d, model.py:12)"), "conv1 (Conv2d, model.py:12)");
}

TEST(Escape, a_literal_of_cpp_holds_the_same_bytes) {
  for (const auto& text : hostile) EXPECT_EQ(read_literal(cpp_string(text)), text);
  EXPECT_EQ(cpp_string("layer1.0.conv1"), "\"layer1.0.conv1\"");
}

TEST(Escape, a_word_of_the_shell_is_the_same_bytes) {
  for (const auto& text : hostile)
    EXPECT_EQ(output_of("bash -c \"$(cat <<'END_OF_WORD'\nprintf %s " + shell_word(text) + "\nEND_OF_WORD\n)\""), text);
  EXPECT_EQ(shell_word("a-b_1.2/c:d"), "a-b_1.2/c:d");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
}

TEST(Escape, markdown_has_no_markup_of_the_text) {
  EXPECT_EQ(markdown("mnist_convnet"), "mnist_convnet");
  EXPECT_EQ(markdown("<b>*a*|[x](y)"), "\\<b\\>\\*a\\*\\|\\[x\\](y)");
  EXPECT_EQ(markdown_code("a`b``c|d"), "```a`b``c\\|d```");
  EXPECT_EQ(markdown_code("`"), "`` ` ``");
}

TEST(Escape, what_reaches_a_terminal_is_lines_of_text) {
  EXPECT_EQ(terminal("one\n\ttwo é ∂"), "one\n\ttwo é ∂");
  EXPECT_EQ(terminal("\x1b[31mred\x1b[0m \x1b]0;title\x07 a\rb \x7f"), "?[31mred?[0m ?]0;title? a?b ?");
  EXPECT_EQ(terminal("\xC2\x9B"
                     "31m \x9B"
                     "31m \xE2\x80\xAEturned"),
            "?31m ?31m ?turned");
  EXPECT_EQ(terminal("caf\xE9"), "caf\xE9");  // a name in another encoding is the user's own
}

TEST(Escape, json_stays_the_same_json) {
  const nlohmann::json value{{"a\x1b",
                              "\x7f \xC2\x9B"
                              "31m \xE2\x80\xAE é"}};
  const auto text = json(value.dump(1));
  EXPECT_EQ(nlohmann::json::parse(text), value);
  EXPECT_EQ(terminal(text), text);
}

TEST(FillIn, values_are_never_looked_at_again) {
  EXPECT_EQ(fill_in("@a@ @b@ @c@ me@x", {{"a", "@b@"}, {"b", "@a@"}}), "@b@ @a@ @c@ me@x");
}

}  // namespace
}  // namespace strata::escape
