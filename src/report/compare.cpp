// SPDX-License-Identifier: Apache-2.0
#include "report/compare.hpp"

#include <fmt/format.h>

#include <iterator>

#include "report/first_screen.hpp"
#include "report/sections/sections.hpp"

namespace strata::report {
namespace {

constexpr const char* kFootnote =
    "A speedup is how many times as fast as the reference a level is, with its 99% confidence interval. MB are "
    "millions "
    "of bytes. Bars start at zero. Every level but the harness has proven equal work in the same run.";

std::vector<document::Section> without_empty(std::vector<document::Section> sections) {
  std::erase_if(sections, [](const document::Section& section) { return section.items.empty(); });
  return sections;
}

document::Document case_part(const analysis::RunResult& run, const analysis::CaseResult& one_case) {
  const auto screen = first_screen(run, one_case, glyphs(true));
  document::Document part{.title = screen.id, .subtitle = screen.what, .summary = screen.sentence};
  part.sections = {result_section(run, one_case)};
  auto added = added_sections(one_case);
  std::move(added.begin(), added.end(), std::back_inserter(part.sections));
  auto others = without_empty({ledger_section(one_case), times_section(one_case), memory_section(one_case),
                               startup_section(one_case), total_cost_section(one_case), numbers_section(one_case),
                               certificate_section(one_case)});
  std::move(others.begin(), others.end(), std::back_inserter(part.sections));
  return part;
}

std::string run_words(const analysis::RunResult& run) {
  return fmt::format("run {}, started {}, strata {}{}", run.run.id, run.run.started, run.run.version,
                     run.run.interrupted ? ", interrupted" : "");
}

std::string title_of(const std::vector<analysis::RunResult>& runs) {
  if (runs.empty()) return "strata";
  const auto& cases = runs[0].cases;
  const auto& name = cases.empty() ? runs[0].run.id : cases[0].model.name;
  return "strata: " + name + (runs.size() > 1 ? fmt::format(" and {} more", runs.size() - 1) : "");
}

void add_part(document::Document& out, std::string id, document::Document part) {
  part.id = std::move(id);
  out.parts.push_back(std::move(part));
}

// Several cases in one sentence each.
document::Section overview(const document::Document& cases) {
  document::Facts facts;
  for (const auto& part : cases.parts) facts.facts.push_back({.name = part.title, .value = part.summary});
  return {.id = "overview", .items = {std::move(facts)}, .is_detail = true};
}

}  // namespace

std::vector<document::Section> added_sections(const analysis::CaseResult& one_case) {
  return without_empty({profile_section(one_case), phases_section(one_case), clients_section(one_case),
                        slo_section(one_case), tuning_section(one_case), dynamic_section(one_case)});
}

document::Document compare_document(const std::vector<analysis::RunResult>& runs) {
  document::Document out{.title = title_of(runs), .footnote = kFootnote};
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const auto& cases = runs[r].cases;
    out.subtitle += (r ? "; " : "") + run_words(runs[r]);
    if (cases.empty())
      out.sections.push_back(
          {.id = "nothing", .items = {document::Text{"This run has no case: nothing was measured."}}});
    for (std::size_t c = 0; c < cases.size(); ++c)
      add_part(out, fmt::format("r{}c{}", r, c), case_part(runs[r], cases[c]));
  }
  if (out.parts.size() > 1) out.sections.push_back(overview(out));
  for (std::size_t r = 0; r < runs.size(); ++r) {
    auto accuracy = accuracy_parts(runs[r]);
    for (std::size_t a = 0; a < accuracy.size(); ++a)
      add_part(out, fmt::format("r{}a{}", r, a), std::move(accuracy[a]));
    add_part(out, fmt::format("r{}-run", r), environment_part(runs[r]));
  }
  return out;
}

}  // namespace strata::report
