// SPDX-License-Identifier: Apache-2.0
#include "report/render/html_text.hpp"

namespace strata::document {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') out += c;
    }
  }
  return out;
}

std::string script_json(const nlohmann::json& value) {
  auto out = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  replace_all(out, "<", "\\u003c");
  replace_all(out, ">", "\\u003e");
  replace_all(out, "&", "\\u0026");
  replace_all(out, "\xE2\x80\xA8", "\\u2028");
  replace_all(out, "\xE2\x80\xA9", "\\u2029");
  return out;
}

std::string script_text(std::string code) {
  replace_all(code, "</script", "<\\/script");
  replace_all(code, "</SCRIPT", "<\\/SCRIPT");
  replace_all(code, "<!--", "<\\!--");
  return code;
}

std::string page_head(const std::string& safe_title, std::string_view styles, bool has_script_beside) {
  std::string out = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  // The policy makes "offline" a fact: the browser refuses every request that this page could make, but for a script
  // beside it.
  out +=
      R"(<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline')";
  if (has_script_beside) out += " 'self' file:";
  out += R"(; img-src data: blob:">)";
  out +=
      "\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" "
      "content=\"light dark\">\n";
  return out + "<title>" + safe_title + "</title>\n<style>" + std::string(styles) + "</style>\n</head>\n<body>\n";
}

}  // namespace strata::document
