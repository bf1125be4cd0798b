// SPDX-License-Identifier: Apache-2.0
// The bill of a case, and what one artefact over several batch sizes did (html_parts.hpp).
#include <fmt/format.h>

#include "report/bill.hpp"
#include "report/dynamic.hpp"
#include "report/html_parts.hpp"

namespace strata::report {
namespace {

std::string cells_table(const std::string& caption, const Cells& header, const std::vector<Cells>& rows,
                        std::size_t text_column = 0) {
  std::vector<std::vector<Cell>> cells;
  for (const auto& row : rows) {
    cells.push_back({words(row.front())});
    for (std::size_t i = 1; i < row.size(); ++i)
      cells.back().push_back(i == text_column ? words(row[i]) : number_cell(row[i]));
  }
  return html_table(caption, header, cells);
}

std::string files(const Json& list_of_files, const char* field, std::string (*write)(double)) {
  std::string out;
  for (const auto& file : list_of_files)
    out += (out.empty() ? "" : ", ") + text(file, "file") + " " + write(number(file, field).value_or(0));
  return out;
}

// Which files the bill's figures count.
std::string counted(const Json& one_case) {
  std::vector<std::vector<Cell>> rows;
  for (const Json* row : sorted_rows(one_case)) {
    const auto kept = files(list(*row, "lines.files"), "lines", count),
               libraries = files(list(*row, "shipped.libraries"), "bytes", size);
    if (!kept.empty() || !libraries.empty()) rows.push_back({words(level_name(*row)), words(kept), words(libraries)});
  }
  return rows.empty() ? ""
                      : html_details("Which files these figures count",
                                     html_table("Files behind the bill",
                                                {"level", "lines of code to keep", "libraries that the process ran"},
                                                rows, "wide"));
}

std::string recompile_reasons(const Json& one_case) {
  std::vector<std::vector<Cell>> rows;
  for (const Json* row : sorted_rows(one_case))
    for (const auto& reason : list(*row, "dynamic.reported.reasons"))
      if (reason.is_string()) rows.push_back({words(level_name(*row)), words(reason.get<std::string>())});
  return rows.empty() ? ""
                      : html_details("Why levels compiled again, as they report it",
                                     html_table("Recompilations", {"level", "reason"}, rows, "wide"));
}

}  // namespace

std::string html_bill(const Json& one_case, const std::string& where) {
  const auto marks = glyphs(true);
  const auto bill = bill_table(one_case, marks);
  std::string out =
      fmt::format(R"(<section id="{0}-bill" aria-labelledby="{0}-bill-h"><h3 id="{0}-bill-h">The bill</h3>)", where);
  if (bill.rows.empty()) return out + "<p>No level has a number.</p></section>\n";
  out += cells_table(
             "What a level costs besides its time; repaid: iterations after which it has, against the reference, with "
             "99% intervals",
             bill.header, bill.rows) +
         counted(one_case);
  if (const auto levels = dynamic_levels(one_case, marks); !levels.rows.empty()) {
    out += cells_table(
        "One artefact over several batch sizes: how many sizes that it had not seen compiled again, and its time "
        "against the artefact of the fixed size",
        levels.header, levels.rows, 4);
    if (const auto sizes = dynamic_sizes(one_case, marks); !sizes.rows.empty())
      out += cells_table(
          "Settled time of one iteration by batch size; in brackets what the first call took longer where it compiled "
          "again",
          sizes.header, sizes.rows);
    out += recompile_reasons(one_case);
  }
  return out + "</section>\n";
}

}  // namespace strata::report
