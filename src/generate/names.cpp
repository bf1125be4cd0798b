// SPDX-License-Identifier: Apache-2.0
#include "generate/names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>

namespace strata::generate {
namespace {

// Keywords of C++20 that a value or a module of PyTorch may be called.
const std::set<std::string_view> keywords{
    "alignas",   "alignof",  "and",     "asm",     "auto",     "bitand",   "bitor",   "bool",      "break",
    "case",      "catch",    "char",    "class",   "compl",    "concept",  "const",   "continue",  "default",
    "delete",    "do",       "double",  "else",    "enum",     "explicit", "export",  "extern",    "false",
    "float",     "for",      "friend",  "goto",    "if",       "inline",   "int",     "long",      "mutable",
    "namespace", "new",      "not",     "nullptr", "operator", "or",       "private", "protected", "public",
    "register",  "requires", "return",  "short",   "signed",   "sizeof",   "static",  "struct",    "switch",
    "template",  "this",     "throw",   "true",    "try",      "typedef",  "typeid",  "typename",  "union",
    "unsigned",  "using",    "virtual", "void",    "volatile", "while",    "xor",     "main",      "kit",
    "std",       "v",        "model",   "p"};

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

std::string Names::unique(std::string_view wanted) {
  const std::string base = identifier(wanted);
  std::string name = base;
  for (int i = 2; !taken_.insert(name).second; ++i)
    name = fmt::format("{}{}{}", base, base.back() == '_' ? "" : "_", i);
  return name;
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  std::replace(text.begin(), text.end(), '\\', '/');
  return text;
}

// JSON's quoting with everything beyond ASCII escaped is C++'s as well.
std::string string_literal(std::string_view text) {
  return nlohmann::json(std::string(text)).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
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
