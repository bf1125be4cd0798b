// SPDX-License-Identifier: Apache-2.0
#include "common/escape.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdio>

namespace strata::escape {
namespace {

// The code point that begins at `at` and its number of bytes; 0 bytes: no UTF-8 there.
struct Decoded {
  std::uint32_t code;
  std::size_t bytes;
};

Decoded decode(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return {first, 1};
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || at + length > text.size()) return {0, 0};
  std::uint32_t code = first & (0xFFU >> (length + 1));
  for (std::size_t i = at + 1; i < at + length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {0, 0};
    code = code << 6 | (byte(i) & 0x3F);
  }
  constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return code < least[length] || code > 0x10FFFF || surrogate ? Decoded{0, 0} : Decoded{code, length};
}

// Ends a line, is a command to a terminal, or shows text in another order than the compiler reads it.
bool is_unprintable(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x2028 || code == 0x2029 ||
         (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069) || code == 0x200E || code == 0x200F ||
         code == 0xFEFF;
}

bool is_unprintable_text(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto [code, bytes] = decode(text, at);
    if (bytes > 0 && is_unprintable(code)) return true;
    at += std::max<std::size_t>(bytes, 1);
  }
  return false;
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
}

std::string octal(char c) {
  char text[5];
  std::snprintf(text, sizeof text, "\\%03o", static_cast<unsigned>(static_cast<unsigned char>(c)));
  return text;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto [code, bytes] = decode(text, at);
    if (bytes == 0)
      out += '?';
    else if (is_unprintable(code))
      out += ' ';
    else
      out += text.substr(at, bytes);
    at += std::max<std::size_t>(bytes, 1);
  }
  return out;
}

std::string terminal(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto [code, bytes] = decode(text, at);
    const auto byte = static_cast<unsigned char>(text[at]);
    const bool space = byte == '\n' || byte == '\t';
    const bool command = bytes == 0 ? byte >= 0x80 && byte < 0xA0  // a control character of eight bits
                                    : is_unprintable(code) && !space;
    if (command)
      out += '?';
    else
      out += text.substr(at, std::max<std::size_t>(bytes, 1));
    at += std::max<std::size_t>(bytes, 1);
  }
  return out;
}

std::string json(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto [code, bytes] = decode(text, at);
    char escaped[16];
    if (bytes > 0 && code >= 0x7F && is_unprintable(code)) {  // below it the library has escaped what is in strings
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(code));
      out += escaped;
    } else {
      out += text.substr(at, std::max<std::size_t>(bytes, 1));
    }
    at += std::max<std::size_t>(bytes, 1);
  }
  return out;
}

std::string comment(std::string_view text) {
  std::string out = one_line(text);
  std::replace(out.begin(), out.end(), '\\', '/');  // at a line's end it would join the next one
  replace_all(out, "*/", "* /");
  replace_all(out, "/*", "/ *");
  replace_all(out, "?\?/", "?? /");  // a backslash, to compilers that know trigraphs
  return out;
}

std::string cpp_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += std::string("\\") + c;
    else if (c == '?')
      out += "\\?";  // no trigraphs
    else if (is_control(c) || static_cast<unsigned char>(c) >= 0x80)
      out += octal(c);  // three digits, so that a digit behind it is none of its own
    else
      out += c;
  }
  return out + "\"";
}

std::string markdown(std::string_view text) {
  const std::string line = one_line(text);
  const auto is_word = [&](std::size_t i) {
    return i < line.size() && std::isalnum(static_cast<unsigned char>(line[i])) != 0;
  };
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool inside_word = line[i] == '_' && i > 0 && is_word(i - 1) && is_word(i + 1);  // is an underscore as it is
    if (!inside_word && std::string_view("\\`*_[]<>|&~$#").find(line[i]) != std::string_view::npos) out += '\\';
    out += line[i];
  }
  return out;
}

std::string markdown_code(std::string_view text) {
  std::string line = one_line(text);
  replace_all(line, "|", "\\|");
  std::size_t longest = 0, run = 0;
  for (const char c : line) longest = std::max(longest, run = c == '`' ? run + 1 : 0);
  const std::string ticks(longest + 1, '`');
  const bool pad = line.empty() || line.front() == '`' || line.back() == '`';
  return ticks + (pad ? " " : "") + line + (pad ? " " : "") + ticks;
}

std::string shell_word(std::string_view text) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0
               ? static_cast<unsigned char>(c) < 0x80
               : std::string_view("._-/:=,@%+").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain)) return std::string(text);
  const bool unprintable = is_unprintable_text(text);
  std::string out = unprintable ? "$'" : "'";
  for (std::size_t at = 0; at < text.size();) {
    const auto [code, length] = decode(text, at);
    const auto bytes = std::max<std::size_t>(length, 1);
    const bool as_numbers = length > 0 && is_unprintable(code);
    for (const char c : text.substr(at, bytes)) {
      if (unprintable && (as_numbers || c == '\'' || c == '\\'))
        out += octal(c);
      else
        out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    }
    at += bytes;
  }
  return out + "'";
}

std::string script_word(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace strata::escape
