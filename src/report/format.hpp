// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them: three significant digits, never more than two decimals, a unit that fits.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace strata::report {

// The few characters that differ between a plain and a Unicode terminal.
struct Glyphs {
  std::string missing, range, dot, ellipsis, branch, last, pipe, rule;
};
const Glyphs& glyphs(bool unicode);

// 0.092 -> "92.0 us", 36.94 -> "36.9 ms", 1500 -> "1.50 s", 7200000 -> "120 min".
std::string duration(double ms);

// A change with its interval, all in the unit of the largest: "-6.97 ms (-8.07 to -5.87)". Without bounds, the change
// alone.
std::string duration_change(double ms, std::optional<double> low, std::optional<double> high);

// Powers of 1000: 310e6 -> "310 MB".
std::string size(double bytes);

// Two decimals, as "1.42"; from 100 on none; "<0.01" for what would read as nothing.
std::string ratio(double value);

// A length of time that is foreseen: "about 3 min", "about 90 days".
std::string about(double seconds);

// At most two decimals, no trailing zeros: "5.5%".
std::string percent(double value);

// Rounded to an integer with thousands separated: "1,128"; from a million on "1.13 million".
std::string count(double value);

// Operations with a unit prefix: 8.2e9 -> "8.20 G".
std::string scaled(double value);

// "out_of_memory" -> "out of memory".
std::string spaced(std::string name);

// Columns a UTF-8 string takes on a terminal (one for each code point).
std::size_t width_of(std::string_view utf8);

// The string without control characters, so that a name cannot steer a terminal; tabs and line ends become spaces.
std::string printable(std::string_view utf8);

// Lines of at most `width` columns, broken at spaces; later lines are indented by `indent` spaces.
std::vector<std::string> wrap(std::string_view words, std::size_t width, std::size_t indent = 0);

// The first sentence of a reason, whole: up to a line's or a sentence's end. Of one that no screen has room for, what
// stands before a semicolon, or else as many words as there is room for and " ...".
std::string first_sentence(std::string_view reason);

}  // namespace strata::report
