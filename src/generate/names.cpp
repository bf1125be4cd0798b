// SPDX-License-Identifier: Apache-2.0
#include "generate/names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

namespace strata::generate {
namespace {

// Keywords of C++20, macros that compilers and <cmath> bring, and names that generated code itself uses.
const std::set<std::string_view> keywords{"EOF",
                                          "NULL",
                                          "INFINITY",
                                          "NAN",
                                          "alignas",
                                          "alignof",
                                          "and",
                                          "and_eq",
                                          "asm",
                                          "assert",
                                          "auto",
                                          "bitand",
                                          "bitor",
                                          "bool",
                                          "break",
                                          "case",
                                          "catch",
                                          "char",
                                          "char16_t",
                                          "char32_t",
                                          "char8_t",
                                          "class",
                                          "co_await",
                                          "co_return",
                                          "co_yield",
                                          "compl",
                                          "concept",
                                          "const",
                                          "const_cast",
                                          "consteval",
                                          "constexpr",
                                          "constinit",
                                          "continue",
                                          "decltype",
                                          "default",
                                          "delete",
                                          "do",
                                          "double",
                                          "dynamic_cast",
                                          "else",
                                          "enum",
                                          "errno",
                                          "explicit",
                                          "export",
                                          "extern",
                                          "false",
                                          "float",
                                          "for",
                                          "friend",
                                          "goto",
                                          "if",
                                          "inline",
                                          "int",
                                          "linux",
                                          "long",
                                          "mutable",
                                          "namespace",
                                          "new",
                                          "noexcept",
                                          "not",
                                          "not_eq",
                                          "nullptr",
                                          "operator",
                                          "or",
                                          "or_eq",
                                          "private",
                                          "protected",
                                          "public",
                                          "register",
                                          "reinterpret_cast",
                                          "requires",
                                          "return",
                                          "short",
                                          "signed",
                                          "sizeof",
                                          "static",
                                          "static_assert",
                                          "static_cast",
                                          "struct",
                                          "switch",
                                          "template",
                                          "this",
                                          "thread_local",
                                          "throw",
                                          "true",
                                          "try",
                                          "typedef",
                                          "typeid",
                                          "typename",
                                          "union",
                                          "unix",
                                          "unsigned",
                                          "using",
                                          "virtual",
                                          "void",
                                          "volatile",
                                          "wchar_t",
                                          "while",
                                          "xor",
                                          "xor_eq",
                                          "main",
                                          "kit",
                                          "std",
                                          "v",
                                          "model",
                                          "p"};

std::string shortest(double number) {
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string infinity(double number, std::string_view type) {
  if (std::isnan(number)) return fmt::format("std::numeric_limits<{}>::quiet_NaN()", type);
  return fmt::format("{}std::numeric_limits<{}>::infinity()", number < 0 ? "-" : "", type);
}

}  // namespace

std::string identifier(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool fits = std::isalnum(static_cast<unsigned char>(c)) != 0 && static_cast<unsigned char>(c) < 128;
    if (fits)
      out += c;
    else if (!out.empty() && out.back() != '_')
      out += '_';
  }
  while (!out.empty() && out.back() == '_') out.pop_back();
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out.front())) != 0) out = "n" + out;
  return keywords.contains(out) ? out + "_" : out;
}

std::string Names::unique(std::string_view requested) {
  const std::string base = identifier(requested);
  std::string name = base;
  for (int i = 2; !taken_.insert(name).second; ++i)
    name = fmt::format("{}{}{}", base, base.back() == '_' ? "" : "_", i);
  return name;
}

std::string braces(const std::vector<std::int64_t>& numbers) {
  return fmt::format("{{{}}}", fmt::join(numbers, ", "));
}
std::string brackets(const std::vector<std::int64_t>& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ", "));
}

std::string float_literal(double number) {
  const auto rounded = static_cast<float>(number);
  if (!std::isfinite(rounded)) return infinity(static_cast<double>(rounded), "float");
  std::string text = fmt::format("{}", rounded);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text + "F";
}

std::string double_literal(double number) {
  return std::isfinite(number) ? shortest(number) : infinity(number, "double");
}

std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > (number < 0 ? 1 : 0); at -= 3)
    text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

}  // namespace strata::generate
