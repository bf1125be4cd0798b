// SPDX-License-Identifier: Apache-2.0
// Text that is not strata's own (names of files, models, layers; paths) in what strata writes: one function for each
// target language. Whatever the text holds, what comes out is one line, and neither code nor markup.
#pragma once

#include <string>
#include <string_view>

namespace strata::escape {

// One line of printable UTF-8: control characters, line ends of Unicode and marks that change the direction of text
// become spaces, bytes that are no UTF-8 become question marks. For people; the others begin with it or with bytes.
std::string one_line(std::string_view text);
// Lines for a terminal: what is no line end, no tab and not printable becomes a question mark, so that nothing in it
// moves the cursor, changes colours or turns text around. Other bytes, also of other encodings, stay as they are.
std::string terminal(std::string_view text);
// JSON, as a library wrote it, with what a terminal would act on as \uXXXX: the same JSON.
std::string json(std::string_view text);
// For a comment: // or /* */ of C++, # of CMake and the shell. Backslashes become slashes.
std::string comment(std::string_view text);
// A string literal of C++ with its quotes, the same bytes.
std::string cpp_string(std::string_view text);
// Prose of Markdown, or a cell of a table.
std::string markdown(std::string_view text);
// A code span of Markdown, with its backticks; in cells of tables too.
std::string markdown_code(std::string_view text);
// A word of the shell, the same bytes; quoted where it must be. Control characters need $'...' (bash, zsh, POSIX 2024).
std::string shell_word(std::string_view text);
// A word of any sh, the same bytes between quotes, a line end as it is: for scripts, not for people.
std::string script_word(std::string_view text);

}  // namespace strata::escape
