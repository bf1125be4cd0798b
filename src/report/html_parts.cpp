// SPDX-License-Identifier: Apache-2.0
#include "report/html_parts.hpp"

#include <fmt/format.h>

namespace strata::report {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

std::string cell_markup(const Cell& cell) {
  if (cell.is_markup) return cell.text;
  if (cell.text.empty() || cell.text == "–")
    return R"(<span class="none" title="unknown" aria-label="unknown">–</span>)";
  return escape_html(cell.text);
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

std::string script_json(const Json& value) {
  auto out = value.dump(-1, ' ', false, Json::error_handler_t::replace);
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

std::string page_head(const std::string& safe_title, std::string_view styles) {
  std::string out = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  // The policy makes "offline" a fact: the browser refuses every request that this page could make.
  out +=
      R"(<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:">)";
  out +=
      "\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" "
      "content=\"light dark\">\n";
  return out + "<title>" + safe_title + "</title>\n<style>" + std::string(styles) + "</style>\n</head>\n<body>\n";
}

Cell words(std::string text) {
  return {std::move(text), false, false};
}
Cell number_cell(std::string text) {
  return {std::move(text), false, true};
}
Cell markup(std::string safe) {
  return {std::move(safe), true, false};
}

std::string html_table(const std::string& caption, const std::vector<std::string>& header,
                       const std::vector<std::vector<Cell>>& rows, const std::string& css_class) {
  std::string out = fmt::format(
      R"(<div class="scroll" role="region" tabindex="0" aria-label="{}"><table class="{}"><caption><span>{}</span></caption><thead><tr>)",
      escape_html(caption), css_class, escape_html(caption));
  for (std::size_t c = 0; c < header.size(); ++c) {
    const bool right = !rows.empty() && c < rows[0].size() && rows[0][c].is_number;
    out += fmt::format(R"(<th scope="col"{}>{}</th>)", right ? R"( class="n")" : "", escape_html(header[c]));
  }
  out += "</tr></thead><tbody>";
  for (const auto& row : rows) {
    out += "<tr>";
    for (std::size_t c = 0; c < row.size(); ++c) {
      const char* kind = row[c].is_number ? R"( class="n")" : "";
      out += c == 0 ? fmt::format(R"(<th scope="row"{}>{}</th>)", kind, cell_markup(row[c]))
                    : fmt::format("<td{}>{}</td>", kind, cell_markup(row[c]));
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string html_details(const std::string& summary, const std::string& body, bool open) {
  return fmt::format("<details{}><summary>{}</summary>{}</details>\n", open ? " open" : "", escape_html(summary), body);
}

std::string html_figure(const std::string& kind, const std::string& run_case, const std::string& title,
                        const std::string& description, const std::string& table) {
  return fmt::format(
      R"(<figure class="plot"><figcaption id="{0}-{1}-title">{2}</figcaption><div class="canvas" data-figure="{1}" data-case="{0}" role="img" aria-labelledby="{0}-{1}-title" aria-describedby="{0}-{1}-text"></div><p class="note" id="{0}-{1}-text">{3}</p>{4}</figure>
)",
      run_case, kind, escape_html(title), escape_html(description), html_details("The same as a table", table));
}

}  // namespace strata::report
