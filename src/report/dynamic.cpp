// SPDX-License-Identifier: Apache-2.0
#include "report/dynamic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "report/first_screen.hpp"

namespace strata::report {
namespace {

std::vector<const Json*> rows_with(const Json& one_case) {
  std::vector<const Json*> rows;
  for (const Json* row : sorted_rows(one_case))
    if (at(*row, "dynamic").is_object()) rows.push_back(row);
  return rows;
}

}  // namespace

DynamicTable dynamic_levels(const Json& one_case, const Glyphs& glyphs, bool brief) {
  DynamicTable out;
  for (const Json* row : rows_with(one_case)) {
    if (out.header.empty())
      out.header = {"level",   "recompiled", "in all", brief ? "against fixed" : "times as fast as fixed",
                    "verdict", "prepare"};
    const Json& found = at(*row, "dynamic");
    Cells cells{level_name(*row)};
    if (text(found, "state") != "measured") {
      cells.push_back(text(found, "state"));
      if (!brief) cells.insert(cells.end(), {glyphs.missing, glyphs.missing});
      cells.push_back(text(found, "reason"));
      if (!brief) cells.push_back(glyphs.missing);
      out.rows.push_back(std::move(cells));
      continue;
    }
    const auto prepare = number(found, "prepare_ms");
    const auto& ratio = at(found, "against_fixed.ratio");
    cells.push_back(fmt::format("{} of {}", text(found, "recompiled"), text(found, "unseen")));
    cells.push_back(number(found, "recompiled").value_or(0) > 0 ? duration(number(found, "recompile_ms").value_or(0))
                                                                : glyphs.missing);
    cells.push_back(ratio.is_object() && number(ratio, "value") ? ratio_with_interval(ratio, glyphs) : glyphs.missing);
    cells.push_back(ratio.is_object() ? verdict_words(text(ratio, "verdict"))
                    : brief           ? ""
                                      : first_sentence(text(found, "against_fixed_note")));
    cells.push_back(prepare ? duration(*prepare) : glyphs.missing);
    out.rows.push_back(std::move(cells));
    if (const auto note = text(found, "against_fixed_note"); brief && !ratio.is_object() && !note.empty())
      out.rows.push_back({level_name(*row), "no ratio", first_sentence(note)});
  }
  return out;
}

DynamicTable dynamic_sizes(const Json& one_case, const Glyphs& glyphs, bool brief) {
  std::set<int> batches;
  std::vector<std::pair<std::string, std::map<int, std::string>>> times;
  for (const Json* row : rows_with(one_case)) {
    if (text(*row, "dynamic.state") != "measured") continue;
    auto& [name, of] = times.emplace_back(level_name(*row), std::map<int, std::string>{});
    for (const auto& size : list(*row, "dynamic.sizes")) {
      const int batch = whole(size, "batch", 0);
      batches.insert(batch);
      of[batch] = number(size, "settled_ms") ? duration(*number(size, "settled_ms")) : glyphs.missing;
      if (flag(size, "recompiled"))
        of[batch] += brief ? " *" : " (+" + duration(number(size, "recompile_ms").value_or(0)) + ")";
    }
  }
  DynamicTable out;
  if (times.empty()) return out;
  out.header = {"batch"};
  for (const int batch : batches) out.header.push_back(count(batch));
  for (const auto& [name, of] : times) {
    Cells line{name};
    for (const int batch : batches) line.push_back(of.contains(batch) ? of.at(batch) : glyphs.missing);
    out.rows.push_back(std::move(line));
  }
  return out;
}

}  // namespace strata::report
