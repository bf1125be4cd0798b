// SPDX-License-Identifier: Apache-2.0
#include "report/render/html.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include "common/escape.hpp"
#include "report/assets.hpp"
#include "report/html_parts.hpp"
#include "report/render/html_figure.hpp"
#include "report/render/points.hpp"
#include "report/render/shown.hpp"

namespace strata::document {
namespace {

constexpr std::size_t kMostPoints = 12, kMostLabelled = 200, kLongText = 36, kLongName = 20, kCrowded = 6;

// Every text of the document goes through this, or through script_json() as data.
std::string html_text(const std::string& text) {
  return report::escape_html(escape::one_line(text));
}

// Writes the body of a page, and collects the figures' data for document.js.
class Page {
 public:
  explicit Page(const Document& document) : document_(document), colours_(document) {}
  std::string body();
  const report::Json& figures() const { return figures_; }

 private:
  std::string anchor(const std::string& id, const std::string& otherwise);
  std::string navigation(const std::vector<std::string>& anchors) const;
  std::string item(const Text& text);
  std::string item(const Table& table);
  std::string item(const Figure& figure);
  std::string item(const HeatMap& map);
  std::string item(const Surface& surface);
  std::string items(const std::vector<Item>& all);
  std::string canvas(const std::string& id, const std::string& title, const std::string& note, report::Json data,
                     const Table& values);

  const Document& document_;
  Colours colours_;
  std::set<std::string> anchors_;
  report::Json figures_ = report::Json::array();
};

// An id of the page's own making: letters, digits, "-" and "_" alone, and unique.
std::string Page::anchor(const std::string& id, const std::string& otherwise) {
  std::string out;
  for (const char c : id) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    out += plain ? c : '-';
  }
  if (out.empty()) out = otherwise;
  out.insert(0, "d-");  // none of the ids that the page itself uses
  auto unique = out;
  for (int number = 2; !anchors_.insert(unique).second; ++number) unique = fmt::format("{}-{}", out, number);
  return unique;
}

std::string cell_content(const Cell& cell) {
  const auto shown = shown_cell(cell, report::glyphs(true)), why = reason_of(cell);
  if (shown.empty() && why.empty()) return R"(<span class="none" title="unknown" aria-label="unknown">–</span>)";
  if (shown.empty()) return R"(<span class="none">)" + html_text(why) + "</span>";
  const auto interval = std::holds_alternative<Number>(cell) ? shown.find(" (") : std::string::npos;
  if (interval == std::string::npos) return html_text(shown);
  // The value is what is looked for; its interval can stand below it.
  return html_text(shown.substr(0, interval)) + R"( <span class="interval">)" + html_text(shown.substr(interval + 1)) +
         "</span>";
}

std::string cell_classes(const Cell& cell, bool names_row, Align align) {
  if (std::holds_alternative<Number>(cell)) return align == Align::right ? "n" : "";
  const auto width =
      report::width_of(std::holds_alternative<Absent>(cell) ? reason_of(cell) : shown_cell(cell, report::glyphs(true)));
  return width > (names_row ? kLongName : kLongText) ? "long" : align == Align::right ? "n" : "";
}

// Cells side by side that are absent for one reason become one, so that a level that failed says so once.
std::string row_markup(const std::vector<Cell>& row, const std::vector<Column>& columns) {
  std::string out = "<tr>";
  for (std::size_t c = 0; c < columns.size();) {
    const auto& cell = cell_of(row, c);
    const auto why = reason_of(cell);
    std::size_t end = c + 1;
    while (c > 0 && !why.empty() && end < columns.size() && reason_of(cell_of(row, end)) == why) ++end;
    auto classes = cell_classes(cell, c == 0, columns[c].align);
    if (end - c > 1) classes.clear();
    const auto attributes = (classes.empty() ? "" : fmt::format(R"( class="{}")", classes)) +
                            (end - c > 1 ? fmt::format(R"( colspan="{}")", end - c) : "");
    out += c == 0 ? fmt::format(R"(<th scope="row"{}>{}</th>)", attributes, cell_content(cell))
                  : fmt::format("<td{}>{}</td>", attributes, cell_content(cell));
    c = end;
  }
  return out + "</tr>\n";
}

std::string table_markup(const Table& table) {
  const auto caption = html_text(table.title);
  std::string out =
      fmt::format(R"(<div class="scroll" role="region" tabindex="0" aria-label="{}"><table{}>)",
                  caption.empty() ? "table" : caption, table.columns.size() > kCrowded ? R"( class="crowded")" : "");
  if (!caption.empty()) out += fmt::format("<caption><span>{}</span></caption>", caption);
  out += "<thead><tr>";
  for (const auto& column : table.columns) {
    const auto title = shown_title(column);
    std::string classes = column.align == Align::right ? "n" : "";
    if (report::width_of(title) > kLongText) classes += " long";
    out += fmt::format(R"(<th scope="col" class="{}">{}</th>)", classes, html_text(title));
  }
  out += "</tr></thead><tbody>";
  for (const auto& row : table.rows) out += row_markup(row, table.columns);
  if (table.rows.empty())
    out += fmt::format(R"(<tr><td colspan="{}" class="none">no rows</td></tr>)", table.columns.size());
  return out + "</tbody></table></div>\n";
}

std::string note_markup(const std::string& note) {
  return note.empty() ? "" : fmt::format(R"(<p class="note">{}</p>)", html_text(note)) + "\n";
}

std::string Page::item(const Text& text) {
  switch (text.kind) {
    case Text::Kind::warning:
      return fmt::format(R"(<p class="warning"><strong>Warning</strong> {}</p>)", html_text(text.paragraph)) + "\n";
    case Text::Kind::command:
      return fmt::format(R"(<pre tabindex="0" aria-label="command"><code>{}</code></pre>)", html_text(text.paragraph)) +
             "\n";
    case Text::Kind::normal:
      break;
  }
  return "<p>" + html_text(text.paragraph) + "</p>\n";
}

std::string Page::item(const Table& table) {
  const auto id = anchor(table.id, "table");
  return fmt::format(R"(<div class="item" id="{}">{}{}</div>)", id, table_markup(table), note_markup(table.note)) +
         "\n";
}

// document.js finds the canvas by its place in the data.
std::string Page::canvas(const std::string& id, const std::string& title, const std::string& note, report::Json data,
                         const Table& values) {
  const auto own = anchor(id, "figure");
  const auto place = figures_.size();
  figures_.push_back(std::move(data));
  auto table = values;
  table.title = title + ", as a table";
  const auto folded =
      "<details><summary>The same as a table</summary>" + table_markup(table) + note_markup(values.note) + "</details>";
  return fmt::format(
             R"(<figure class="plot" id="{0}"><figcaption id="{0}-title">{1}</figcaption>{2}<div class="legend" role="group" aria-label="lines to show"></div><div class="canvas" data-figure="{3}" role="img" aria-labelledby="{0}-title"></div>{4}</figure>)",
             own, html_text(title), note_markup(note), place, folded) +
         "\n";
}

std::string Page::item(const Figure& figure) {
  return canvas(figure.id, figure.title, figure.note, figure_data(figure, colours_),
                points_table(figure, has_labels(figure) ? kMostLabelled : kMostPoints));
}

std::string Page::item(const HeatMap& map) {
  auto values = fields_table(map);
  values.note.clear();
  return canvas(map.id, map.title, map.note, heat_map_data(map, colours_), values);
}

std::string Page::item(const Surface& surface) {
  auto values = layers_table(surface);
  values.note.clear();
  return canvas(surface.id, surface.title, surface.note, surface_data(surface, colours_), values);
}

bool same_titles(const std::vector<Choice>& a, const std::vector<Choice>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Choice& x, const Choice& y) { return x.title == y.title; });
}

// Alternatives stand in one box, where document.js shows one of them and what there is to choose; without it all are
// seen. A surface has a box too, since it can be seen in two ways.
std::string Page::items(const std::vector<Item>& all) {
  std::string out;
  const std::vector<Choice>* open = nullptr;
  for (const auto& each : all) {
    const auto& own = choices_of(each);
    const bool goes_on = open && !own.empty() && same_titles(*open, own);
    if (open && !goes_on) out += "</div>\n", open = nullptr;
    if (!open && (!own.empty() || std::holds_alternative<Surface>(each))) {
      out += "<div class=\"family\"><div class=\"choices\"></div>\n";
      open = &own;
    }
    out += std::visit([&](const auto& one) { return item(one); }, each);
  }
  return open ? out + "</div>\n" : out;
}

std::string Page::navigation(const std::vector<std::string>& anchors) const {
  if (anchors.size() < 2) return "";
  std::string out = R"(<nav aria-label="Contents"><ul><li><ul>)";
  for (std::size_t s = 0; s < anchors.size(); ++s)
    out += fmt::format(R"(<li><a href="#{}">{}</a></li>)", anchors[s], html_text(document_.sections[s].title));
  return out + "</ul></li></ul></nav>\n";
}

std::string facts_markup(const std::vector<Fact>& facts) {
  if (facts.empty()) return "";
  std::string out = R"(<section aria-labelledby="facts-h"><h3 id="facts-h">Environment</h3><dl class="lines">)";
  for (const auto& fact : facts)
    out += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", html_text(fact.name), html_text(fact.value));
  return out + "</dl></section>\n";
}

std::string Page::body() {
  std::vector<std::string> anchors;
  for (const auto& section : document_.sections) anchors.push_back(anchor(section.id, "section"));
  std::string out = R"(<a class="skip" href="#main">Skip to the result</a>)";
  out += fmt::format("\n<header><h1>{}</h1></header>\n{}<main id=\"main\" tabindex=\"-1\">\n",
                     html_text(document_.title), navigation(anchors));
  if (!document_.summary.empty()) out += fmt::format("<p class=\"sentence\">{}</p>\n", html_text(document_.summary));
  if (!document_.subtitle.empty()) out += fmt::format("<p class=\"what\">{}</p>\n", html_text(document_.subtitle));
  for (std::size_t s = 0; s < anchors.size(); ++s) {
    const auto& section = document_.sections[s];
    out += fmt::format(R"(<section id="{0}" aria-labelledby="{0}-h"><h3 id="{0}-h">{1}</h3>)", anchors[s],
                       html_text(section.title)) +
           "\n";
    out += items(section.items) + "</section>\n";
  }
  return out + facts_markup(document_.facts) + "</main>\n";
}

Result<std::string> plotly_source(const std::filesystem::path& plotly_js) {
  std::ifstream in(plotly_js, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(in), {}};
  if (content.empty())
    return fail(fmt::format("cannot read plotly.min.js at {}, which the HTML report is drawn with", plotly_js.string()),
                "run ./strata again to complete the set-up, or choose --format md", Exit::environment);
  return content;
}

}  // namespace

Result<std::string> render_html(const Document& document, const std::filesystem::path& plotly_js) {
  Page page(document);
  const auto body = page.body();
  auto out = report::page_head(html_text(document.title),
                               std::string(report::assets::kReportCss) + std::string(report::assets::kDocumentCss)) +
             body;
  if (page.figures().empty()) return out + "</body>\n</html>\n";
  auto plotly = plotly_source(plotly_js);
  if (!plotly) return tl::unexpected(plotly.error());
  out += "<noscript><p class=\"note\">Figures need JavaScript; their numbers are in the tables.</p></noscript>\n";
  out += "<script type=\"application/json\" id=\"strata-data\">" + report::script_json({{"figures", page.figures()}}) +
         "</script>\n<script>" + report::script_text(std::move(*plotly)) + "</script>\n<script>" +
         report::script_text(std::string(report::assets::kDocumentJs)) + "</script>\n";
  return out + "</body>\n</html>\n";
}

}  // namespace strata::document
