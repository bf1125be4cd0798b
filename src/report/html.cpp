// SPDX-License-Identifier: Apache-2.0
#include "report/html.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iterator>

#include "report/assets.hpp"
#include "report/clients.hpp"
#include "report/environments.hpp"
#include "report/html_parts.hpp"
#include "report/sentence.hpp"

namespace strata::report {
namespace {

Result<std::string> read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(in), {}};
  if (!in.good() && content.empty())
    return fail(fmt::format("cannot read plotly.min.js at {}, which the HTML report is drawn with", path.string()),
                "run ./strata again to complete the set-up, or choose --format md", Exit::environment);
  return content;
}

std::string case_place(std::size_t run, std::size_t one_case) {
  return fmt::format("r{}c{}", run, one_case);
}

std::string navigation(const std::vector<Json>& runs) {
  std::string out = R"(<nav aria-label="Contents"><ul>)";
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const auto& cases = list(runs[r], "cases");
    for (std::size_t c = 0; c < cases.size(); ++c) {
      const auto where = case_place(r, c);
      out += fmt::format(R"(<li><a class="case-link" href="#{}">{}</a><ul>)", where, escape_html(text(cases[c], "id")));
      for (const auto& [id, name] : {std::pair{"ledger", "Ledger"},
                                     {"times", "Times"},
                                     {"memory", "Memory"},
                                     {"startup", "Start-up"},
                                     {"bill", "The bill"},
                                     {"clients", "Several clients"},
                                     {"numbers", "All numbers"},
                                     {"proof", "Certificate"}}) {
        if (std::string_view(id) == "clients" && client_table(cases[c], glyphs(true), true).rows.empty()) continue;
        out += fmt::format(R"(<li><a href="#{}-{}">{}</a></li>)", where, id, name);
      }
      out += "</ul></li>";
    }
    for (std::size_t a = 0; a < list(runs[r], "accuracy").size(); ++a)
      out += fmt::format(R"(<li><a href="#r{}a{}">Accuracy against speed</a></li>)", r, a);
    out += fmt::format(R"(<li><a href="#r{0}-run">Environment and command{1}</a></li>)", r,
                       runs.size() > 1 ? " of " + escape_html(text(runs[r], "run.id")) : "");
  }
  return out + "</ul></nav>\n";
}

std::string facts(const std::string& caption, const Json& object) {
  std::vector<std::vector<Cell>> rows;
  for (const auto& [key, value] : object.items())
    rows.push_back({words(key), words(value.is_string() ? value.get<std::string>()
                                      : value.is_null() ? ""
                                                        : value.dump())});
  return rows.empty() ? "" : html_table(caption, {"what", "value"}, rows, "facts");
}

std::string run_section(const Json& run, std::size_t index) {
  std::string out = fmt::format(
      R"(<section id="r{0}-run" aria-labelledby="r{0}-run-h"><h2 id="r{0}-run-h">Environment and command of run {1}</h2>)",
      index, escape_html(text(run, "run.id")));
  out += fmt::format(R"(<h3>Run it again</h3><pre tabindex="0" aria-label="command"><code>{}</code></pre>)",
                     escape_html(text(run, "run.command")));
  if (const auto& warnings = list(run, "warnings"); !warnings.empty()) {
    std::vector<std::vector<Cell>> rows;
    for (const auto& warning : warnings)
      rows.push_back({words(text(warning, "id")), words(text(warning, "what")), words(text(warning, "advice"))});
    out += "<h3>Warnings</h3>" + html_table("Warnings of this run", {"id", "what", "what to do"}, rows, "wraps");
  }
  out += "<h3>Environment</h3><div class=\"columns\">" + facts("The machine", at(run, "machine")) +
         facts("The run", at(run, "run"));
  const Json& environments = list(run, "environments");
  std::vector<std::string> header{"package"};
  for (auto environment : environments) {
    const auto name = text(environment, "name");
    header.push_back(name);
    if (environment.is_object()) environment.erase("packages");
    out += facts(name.empty() ? "A Python environment" : "The Python environment " + name, environment);
  }
  out += "</div>";
  std::vector<std::vector<Cell>> rows;
  for (const auto& package : package_differences(environments)) {
    rows.emplace_back();
    for (const auto& cell : package) rows.back().push_back(words(cell));
  }
  if (!rows.empty()) out += html_table("Packages that are not the same in all environments", header, rows);
  return out + "</section>\n";
}

std::string case_article(const Json& run, const Json& one_case, const std::string& where) {
  return fmt::format(R"(<article id="{0}" aria-labelledby="{0}-h"><h2 id="{0}-h"><code>{1}</code></h2>)", where,
                     escape_html(text(one_case, "id"))) +
         html_first_screen(run, one_case, where) + html_ledger(one_case, where) + html_figures(one_case, where) +
         html_bill(one_case, where) + html_all_numbers(one_case, where) + html_certificates(one_case, where) +
         "</article>\n";
}

std::string title_of(const std::vector<Json>& runs) {
  const auto& cases = list(runs[0], "cases");
  const auto name = cases.empty() ? text(runs[0], "run.id") : text(cases[0], "model.name");
  return "strata: " + name + (runs.size() > 1 ? fmt::format(" and {} more", runs.size() - 1) : "");
}

// What several cases have in common with a contents page: one line each, linked.
std::string overview(const std::vector<Json>& runs) {
  std::string items;
  std::size_t shown = 0;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const auto& cases = list(runs[r], "cases");
    for (std::size_t c = 0; c < cases.size(); ++c, ++shown) {
      const Json said = at(cases[c], "headline").is_object() ? at(cases[c], "headline") : headline(cases[c]);
      items += fmt::format(R"(<li><a href="#{}"><code>{}</code></a> {}</li>)", case_place(r, c),
                           escape_html(text(cases[c], "id")), escape_html(text(said, "sentence")));
    }
  }
  return shown < 2 ? ""
                   : R"(<section class="overview" aria-label="All cases in one sentence each"><ul>)" + items +
                         "</ul></section>\n";
}

}  // namespace

Result<std::string> html(const std::vector<Json>& runs, const std::filesystem::path& plotly_js) {
  if (runs.empty())
    return fail("a report needs at least one run, got none", "name a run: strata list runs", Exit::usage);
  auto plotly = read_file(plotly_js);
  if (!plotly) return tl::unexpected(plotly.error());
  const auto title = escape_html(title_of(runs));
  std::string out = page_head(title, assets::kReportCss);
  out += R"(<a class="skip" href="#main">Skip to the result</a>)";
  out += fmt::format("\n<header><h1>{}</h1><p class=\"note\">", title);
  for (const auto& run : runs)
    out += fmt::format("<span>run {} · {} · strata {}{}</span> ", escape_html(text(run, "run.id")),
                       escape_html(text(run, "run.started")), escape_html(text(run, "run.version")),
                       flag(run, "run.interrupted") ? " · interrupted" : "");
  out += "</p></header>\n" + navigation(runs) + "<main id=\"main\" tabindex=\"-1\">\n" + overview(runs);
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const auto& cases = list(runs[r], "cases");
    if (cases.empty()) out += "<p class=\"sentence\">This run has no case: nothing was measured.</p>";
    for (std::size_t c = 0; c < cases.size(); ++c) out += case_article(runs[r], cases[c], case_place(r, c));
    out += html_accuracy(runs[r], r) + run_section(runs[r], r);
  }
  out +=
      "</main>\n<footer><p class=\"note\">Ratios are times as fast as the reference, with 99% intervals. MB are "
      "millions of bytes. "
      "Bars start at zero. Every level but the harness has proven equal work in the same run.</p></footer>\n";
  out += "<noscript><p class=\"note\">Figures need JavaScript; their numbers are in the tables.</p></noscript>\n";
  out += "<script type=\"application/json\" id=\"strata-data\">" + script_json(Json{{"runs", runs}}) + "</script>\n";
  out += "<script>" + script_text(std::move(*plotly)) + "</script>\n<script>" +
         script_text(std::string(assets::kReportJs)) + "</script>\n";
  return out + "</body>\n</html>\n";
}

}  // namespace strata::report
