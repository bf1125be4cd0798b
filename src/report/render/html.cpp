// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <set>

#include "common/escape.hpp"
#include "report/assets.hpp"
#include "report/render/cell_text.hpp"
#include "report/render/html_figure.hpp"
#include "report/render/html_text.hpp"
#include "report/render/points.hpp"
#include "report/render/render.hpp"

namespace strata::document {
namespace {

constexpr std::size_t kMostPoints = 12, kMostLabelled = 200, kLongText = 36, kLongName = 20, kCrowded = 6;

constexpr const char* kUnknown = R"(<span class="none" title="unknown">–</span>)";

// Every text of the document goes through this, or through script_json() as data.
std::string html_text(const std::string& text) {
  return escape_html(escape::one_line(text));
}

// Writes the body of a page, and collects the figures' data for document.js.
class Page {
 public:
  explicit Page(const Document& document) : document_(document), colours_(document) {}
  std::string body();
  const nlohmann::json& figures() const { return figures_; }

 private:
  std::string anchor(const std::string& id, const std::string& otherwise);
  std::string item(const Text& text);
  std::string item(const Table& table);
  std::string item(const Figure& figure);
  std::string item(const Bars& bars);
  std::string item(const HeatMap& map);
  std::string item(const Surface& surface);
  std::string item(const Facts& facts);
  std::string item(const Details& details);
  std::string items(const std::vector<Item>& all);
  std::string content(const Document& document);
  std::string part(const Document& document);
  std::string canvas(const std::string& id, const std::string& title, const std::string& note, nlohmann::json data,
                     const Table& values);

  const Document& document_;
  Colours colours_;
  std::set<std::string> anchors_;
  std::string part_;        // the id of the part that is written, with a "-" behind it
  std::string navigation_;  // links to what was written
  nlohmann::json figures_ = nlohmann::json::array();
};

// An id of the page's own making: letters, digits, "-" and "_" alone, and unique.
std::string Page::anchor(const std::string& id, const std::string& otherwise) {
  std::string out;
  for (const char c : part_ + id) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    out += plain ? c : '-';
  }
  if (id.empty()) out += otherwise;
  out.insert(0, "d-");  // none of the ids that the page itself uses
  auto unique = out;
  for (int number = 2; !anchors_.insert(unique).second; ++number) unique = fmt::format("{}-{}", out, number);
  return unique;
}

// As document.css names it.
const char* class_of(Tone tone) {
  switch (tone) {
    case Tone::good:
      return "good";
    case Tone::bad:
      return "bad";
    case Tone::faint:
      return "faint";
    case Tone::strong:
      return "strong";
    case Tone::plain:
      break;
  }
  return "";
}

std::string cell_content(const Cell& cell) {
  const auto shown = cell_text(cell, report::glyphs(true)), why = reason_of(cell);
  if (shown.empty() && std::holds_alternative<std::string>(cell)) return "";  // nothing is said, and nothing unknown
  if (shown.empty() && why.empty()) return kUnknown;
  if (shown.empty()) return R"(<span class="none">)" + html_text(why) + "</span>";
  if (const auto* word = std::get_if<Word>(&cell); word && word->tone != Tone::plain)
    return fmt::format(R"(<span class="{}">{}</span>)", class_of(word->tone), html_text(shown));
  const auto interval = std::holds_alternative<Number>(cell) ? shown.find(" (") : std::string::npos;
  if (interval == std::string::npos) return html_text(shown);
  // The value is what is looked for; its interval can stand below it.
  return html_text(shown.substr(0, interval)) + R"( <span class="interval">)" + html_text(shown.substr(interval + 1)) +
         "</span>";
}

std::string cell_classes(const Cell& cell, bool names_row, Align align) {
  if (std::holds_alternative<Number>(cell)) return align == Align::right ? "n" : "";
  const auto width =
      report::width_of(std::holds_alternative<Absent>(cell) ? reason_of(cell) : cell_text(cell, report::glyphs(true)));
  return width > (names_row ? kLongName : kLongText) ? "long" : align == Align::right ? "n" : "";
}

// The largest number of a column with bars; 0 where it has none.
double longest_bar(const Table& table, std::size_t column) {
  double longest = 0;
  if (table.columns[column].has_bars)
    for (const auto& row : table.rows)
      if (const auto* number = std::get_if<Number>(&cell_of(row, column)); number && std::isfinite(number->value))
        longest = std::max(longest, number->value);
  return longest;
}

// A bar from zero in front of the number.
std::string bar_markup(const Cell& cell, double longest) {
  const auto* number = std::get_if<Number>(&cell);
  if (!number || !std::isfinite(number->value) || longest <= 0) return "";
  return fmt::format(R"(<span class="bar" aria-hidden="true"><i style="width:{:.1f}%"></i></span>)",
                     100 * std::max(0.0, number->value) / longest);
}

// Cells side by side that are absent for one reason become one, so that a level that failed says so once.
std::string row_markup(const Table& table, std::size_t place, const std::vector<double>& longest) {
  const auto& row = table.rows[place];
  const auto& columns = table.columns;
  const int depth = place < table.depths.size() ? table.depths[place] : 0;
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
    const auto content = bar_markup(cell, longest[c]) + cell_content(cell);
    if (c > 0)
      out += fmt::format("<td{}>{}</td>", attributes, content);
    else if (depth > 0)
      out += fmt::format(R"(<th scope="row"{}><span class="below" style="--depth:{}">{}</span></th>)", attributes,
                         depth, content);
    else
      out += fmt::format(R"(<th scope="row"{}>{}</th>)", attributes, content);
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
    const bool right = column.align == Align::right, is_long = report::width_of(title) > kLongText;
    const auto* classes = right && is_long ? R"( class="n long")"
                          : right          ? R"( class="n")"
                          : is_long        ? R"( class="long")"
                                           : "";
    out += fmt::format(R"(<th scope="col"{}>{}</th>)", classes, html_text(title));
  }
  out += "</tr></thead><tbody>";
  std::vector<double> longest;
  for (std::size_t c = 0; c < table.columns.size(); ++c) longest.push_back(longest_bar(table, c));
  for (std::size_t r = 0; r < table.rows.size(); ++r) out += row_markup(table, r, longest);
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
    case Text::Kind::log: {
      std::string lines;
      for (const auto& line : lines_of(text)) lines += html_text(line) + "\n";
      return R"(<pre tabindex="0" aria-label="log">)" + lines + "</pre>\n";
    }
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
std::string Page::canvas(const std::string& id, const std::string& title, const std::string& note, nlohmann::json data,
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
                figure.table ? *figure.table : points_table(figure, has_labels(figure) ? kMostLabelled : kMostPoints));
}

std::string Page::item(const Bars& bars) {
  auto values = bars.table ? *bars.table : bars_table(bars);
  if (!bars.table) values.note.clear();
  return canvas(bars.id, bars.title, bars.note, bars_data(bars), values);
}

std::string facts_markup(const std::vector<Fact>& facts) {
  const bool wide =
      std::any_of(facts.begin(), facts.end(), [](const Fact& fact) { return report::width_of(fact.name) > kLongName; });
  std::string out = fmt::format(R"(<dl class="lines{}">)", wide ? " wide" : "");
  for (const auto& fact : facts) {
    auto value = fact.value.empty() ? std::string(kUnknown) : html_text(fact.value);
    if (fact.is_command) value = fmt::format(R"(<pre tabindex="0" aria-label="command"><code>{}</code></pre>)", value);
    out += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", html_text(fact.name), value);
  }
  return out + "</dl>\n";
}

std::string Page::item(const Facts& facts) {
  const auto title = facts.title.empty() ? "" : "<h4>" + html_text(facts.title) + "</h4>";
  return "<div class=\"facts\">" + title + facts_markup(facts.facts) + "</div>\n";
}

std::string Page::item(const Details& details) {
  return "<details><summary>" + html_text(details.title) + "</summary>" + items(details.items) + "</details>\n";
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
    out += std::visit([&](const auto& element) { return item(element); }, each);
  }
  return open ? out + "</div>\n" : out;
}

// Answer and sections, each of these with a link in the contents.
std::string Page::content(const Document& document) {
  std::string out;
  if (!document.summary.empty()) out += fmt::format("<p class=\"sentence\">{}</p>\n", html_text(document.summary));
  if (!document.subtitle.empty()) out += fmt::format("<p class=\"what\">{}</p>\n", html_text(document.subtitle));
  for (const auto& section : document.sections) {
    const auto own = anchor(section.id, "section");
    const auto title = html_text(section.title);
    if (title.empty()) {
      out += fmt::format("<section id=\"{}\" aria-label=\"Result\">\n", own);
    } else {
      navigation_ += fmt::format(R"(<li><a href="#{}">{}</a></li>)", own, title);
      out += fmt::format(R"(<section id="{0}" aria-labelledby="{0}-h"><h3 id="{0}-h">{1}</h3>)", own, title) + "\n";
    }
    out += items(section.items) + "</section>\n";
  }
  return out;
}

std::string Page::part(const Document& document) {
  part_.clear();
  const auto own = anchor(document.id, "part");
  part_ = document.id + "-";
  navigation_ += fmt::format(R"(<li><a class="part-link" href="#{}">{}</a><ul>)", own, html_text(document.title));
  auto out = fmt::format(R"(<article id="{0}" aria-labelledby="{0}-h"><h2 id="{0}-h">{1}</h2>)", own,
                         html_text(document.title)) +
             "\n" + content(document);
  if (!document.facts.empty()) out += facts_markup(document.facts);
  navigation_ += "</ul></li>";
  out += "</article>\n";
  for (const auto& inner : document.parts) out += part(inner);
  return out;
}

std::string Page::body() {
  auto main = content(document_);
  if (!navigation_.empty()) navigation_ = "<li><ul>" + navigation_ + "</ul></li>";
  for (const auto& element : document_.parts) main += part(element);
  part_.clear();
  if (!document_.facts.empty())
    main += R"(<section aria-labelledby="facts-h"><h3 id="facts-h">Environment</h3>)" + facts_markup(document_.facts) +
            "</section>\n";
  std::string out = R"(<a class="skip" href="#main">Skip to the result</a>)";
  out += fmt::format("\n<header><h1>{}</h1></header>\n", html_text(document_.title));
  if (!navigation_.empty() && (document_.sections.size() > 1 || !document_.parts.empty()))
    out += R"(<nav aria-label="Contents"><ul>)" + navigation_ + "</ul></nav>\n";
  out += "<main id=\"main\" tabindex=\"-1\">\n" + main + "</main>\n";
  if (!document_.footnote.empty())
    out += fmt::format("<footer><p class=\"note\">{}</p></footer>\n", html_text(document_.footnote));
  return out;
}

Result<std::string> plotly_source(const std::filesystem::path& plotly_js) {
  std::ifstream in(plotly_js, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(in), {}};
  if (content.empty())
    return fail(fmt::format("cannot read plotly.min.js at {}, which the HTML report is drawn with", plotly_js.string()),
                "run ./strata again to complete the set-up, or choose --format md", Exit::environment);
  return content;
}

// `script`: the element with plotly's script.
std::string page_with(const Document& document, const Page& page, const std::string& body, const std::string& script) {
  const bool asks = script.starts_with("<script src=");
  auto out = page_head(html_text(document.title), report::assets::kDocumentCss, asks) + body;
  if (!page.figures().empty())
    out += "<noscript><p class=\"note\">Figures need JavaScript; their numbers are in the tables.</p></noscript>\n" +
           std::string(R"(<script type="application/json" id="strata-data">)") +
           script_json({{"figures", page.figures()}}) + "</script>\n" + script + "\n<script>" +
           script_text(std::string(report::assets::kDocumentJs)) + "</script>\n";
  return out + "</body>\n</html>\n";
}

}  // namespace

Result<std::string> render_html(const Document& document, const std::filesystem::path& plotly_js) {
  Page page(document);
  const auto body = page.body();
  if (page.figures().empty()) return page_with(document, page, body, "");
  auto plotly = STRATA_TRY(plotly_source(plotly_js));
  return page_with(document, page, body, "<script>" + script_text(std::move(plotly)) + "</script>");
}

std::string render_html_beside(const Document& document, const std::string& script) {
  Page page(document);
  const auto body = page.body();
  return page_with(document, page, body, fmt::format(R"(<script src="{}"></script>)", html_text(script)));
}

}  // namespace strata::document
