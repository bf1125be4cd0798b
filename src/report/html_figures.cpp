// SPDX-License-Identifier: Apache-2.0
// The figures of a case with the tables that say the same, and the ledger's section (html_parts.hpp). report.js draws.
#include <fmt/format.h>

#include <algorithm>

#include "report/clients.hpp"
#include "report/first_screen.hpp"
#include "report/html_parts.hpp"
#include "report/ledger_tree.hpp"

namespace strata::report {
namespace {

using Rows = std::vector<std::vector<Cell>>;

// Measured rows that figures show: harness levels would squeeze the rest into a corner.
std::vector<const Json*> drawn_rows(const Json& one_case) {
  std::vector<const Json*> rows;
  for (const Json* row : sorted_rows(one_case))
    if (is_measured(*row) && !flag(*row, "harness")) rows.push_back(row);
  return rows;
}

Cell value(const Json& row, const std::string& path, std::string (*write)(double)) {
  const auto found = number(row, path);
  return number_cell(found ? write(*found) : "");
}

std::string distribution_table(const std::vector<const Json*>& rows) {
  Rows cells;
  for (const Json* row : rows)
    cells.push_back({words(level_name(*row)), value(*row, "end_to_end_ms.min", duration),
                     value(*row, "end_to_end_ms.median", duration), value(*row, "end_to_end_ms.p90", duration),
                     value(*row, "end_to_end_ms.p99", duration), value(*row, "end_to_end_ms.samples", count)});
  return html_table("Distribution of the time of one iteration",
                    {"level", "minimum", "median", "p90", "p99", "samples"}, cells);
}

// One line a level and restart: thousands of blocks would help nobody as a table.
std::string blocks_table(const std::vector<const Json*>& rows) {
  Rows cells;
  for (const Json* row : rows) {
    struct Restart {
      std::vector<double> medians;
      int disturbed = 0;
    };
    std::vector<std::pair<double, Restart>> restarts;
    for (const auto& block : list(*row, "blocks")) {
      const auto id = number(block, "restart").value_or(0);
      auto found = std::find_if(restarts.begin(), restarts.end(), [&](const auto& r) { return r.first == id; });
      if (found == restarts.end()) found = restarts.insert(restarts.end(), {id, {}});
      found->second.disturbed += flag(block, "disturbed");
      if (const auto ms = number(block, "median_ms")) found->second.medians.push_back(*ms);
    }
    for (auto& [id, restart] : restarts) {
      auto& medians = restart.medians;
      std::sort(medians.begin(), medians.end());
      const auto at_share = [&](double share) {
        return medians.empty()
                   ? std::string()
                   : duration(medians[static_cast<std::size_t>(share * static_cast<double>(medians.size() - 1))]);
      };
      cells.push_back({words(level_name(*row)), number_cell(count(id + 1)),
                       number_cell(count(static_cast<double>(medians.size()))), number_cell(count(restart.disturbed)),
                       number_cell(at_share(0)), number_cell(at_share(0.5)), number_cell(at_share(1))});
    }
  }
  return html_table("Blocks of each restart, by their median iteration",
                    {"level", "restart", "blocks", "disturbed", "minimum", "median", "maximum"}, cells);
}

std::string memory_table(const std::vector<const Json*>& rows) {
  Rows cells;
  for (const Json* row : rows) {
    std::vector<Cell> line{words(level_name(*row))};
    for (const char* key : {"idle_private_bytes", "above_idle_bytes", "peak_private_bytes", "steady_private_bytes",
                            "steady_pss_bytes", "shared_file_bytes", "device_peak_bytes"})
      line.push_back(value(*row, std::string("memory.") + key, size));
    cells.push_back(line);
  }
  return html_table("Memory of a worker by itself",
                    {"level", "idle runtime", "above idle", "peak private", "steady private", "steady share (PSS)",
                     "file pages", "GPU peak"},
                    cells);
}

std::string startup_table(const std::vector<const Json*>& rows) {
  Rows cells;
  for (const Json* row : rows) {
    std::vector<Cell> line{words(level_name(*row))};
    for (const char* key : {"process_ms", "library_ms", "load_ms", "build_ms", "weights_ms", "first_iteration_ms",
                            "again_ms", "prepare_ms", "first_ever_ms"})
      line.push_back(value(*row, std::string("startup.") + key, duration));
    cells.push_back(line);
  }
  return html_table("From starting the process to the end of the first iteration",
                    {"level", "process", "libraries", "load", "of it the network", "of it the weights",
                     "first iteration", "again, from caches", "prepare", "first time ever"},
                    cells);
}

std::string break_even_table(const std::vector<const Json*>& rows) {
  Rows cells;
  for (const Json* row : rows) {
    if (!at(*row, "break_even").is_object()) continue;
    const auto iterations = number(*row, "break_even.iterations"), ms = number(*row, "end_to_end_ms.estimate");
    const bool never = flag(*row, "break_even.never");
    const auto low = number(*row, "break_even.low"), high = number(*row, "break_even.high");
    cells.push_back({words(level_name(*row)),
                     number_cell(never             ? "never"
                                 : !iterations     ? ""
                                 : *iterations < 1 ? "at once"
                                                   : count(*iterations)),
                     number_cell(low && high && *high >= 1 ? count(*low) + " to " + count(*high) : ""),
                     number_cell(!never && iterations && *iterations >= 1 && ms ? duration(*iterations * *ms) : "")});
  }
  return cells.empty() ? ""
                       : html_table(
                             "Break-even: iterations after which a longer start (again, from caches) has paid back "
                             "against the reference",
                             {"level", "iterations", "99% interval", "time"}, cells);
}

std::string section(const std::string& where, const char* id, const char* title, const std::string& body) {
  return fmt::format(R"(<section id="{0}-{1}" aria-labelledby="{0}-{1}-h"><h3 id="{0}-{1}-h">{2}</h3>{3}</section>)",
                     where, id, title, body) +
         "\n";
}

// A section only where clients were asked for.
std::string clients_section(const Json& one_case, const std::string& where) {
  const auto clients = client_table(one_case, glyphs(true), false);
  if (clients.rows.empty()) return "";
  Rows cells;
  for (const auto& row : clients.rows) {
    cells.push_back({words(row[0]), words(row[1])});
    const bool numbers = row.size() == clients.header.size();
    for (std::size_t c = 2; c < clients.header.size(); ++c)
      cells.back().push_back(numbers ? number_cell(row[c]) : words(c == 2 ? row[2] : ""));
  }
  return section(
      where, "clients", "Several clients at once",
      html_figure("clients", where, "Throughput against p99",
                  "One line a level, from few clients to many; further right and lower is better. Filled: threads of "
                  "one process; open, with a thinner line: processes. All on the same cores.",
                  html_table("Requests in flight: each client sends its next request when its last one is answered. "
                             "Memory is private, summed over processes. p99?: too few requests to bound it",
                             clients.header, cells)));
}

}  // namespace

std::string html_figures(const Json& one_case, const std::string& where) {
  const auto rows = drawn_rows(one_case);
  const std::string nothing = "<p>No level has a number.</p>";
  if (rows.empty())
    return section(where, "times", "Times", nothing) + section(where, "memory", "Memory", nothing) +
           section(where, "startup", "Start-up", nothing);
  const auto times = html_figure("distribution", where, "How the time of one iteration is distributed",
                                 "One row a level, all samples, on one axis of time. Harness levels are left out.",
                                 distribution_table(rows)) +
                     html_figure("blocks", where, "Blocks over time",
                                 "Each mark is the median of one block: filled where nothing disturbed it, open and "
                                 "shaded where something did. Dotted lines: a restart with fresh processes.",
                                 blocks_table(rows));
  const auto memory =
      html_figure("memory", where, "Private memory at its peak, alone on the machine",
                  "The runtime when idle and what the network adds. Diamonds: steady share with file pages (PSS).",
                  memory_table(rows));
  auto startup = html_figure("startup", where, "Start again, from caches, to the end of the first iteration",
                             "Process, libraries, load, first iteration.", startup_table(rows)) +
                 html_figure("first_ever", where, "Start the first time ever",
                             "Capture or compilation (prepare), then everything else.", startup_table(rows));
  startup += break_even_table(rows);
  return section(where, "times", "Times", times) + section(where, "memory", "Memory", memory) +
         section(where, "startup", "Start-up and break-even", startup) + clients_section(one_case, where);
}

std::string html_ledger(const Json& one_case, const std::string& where) {
  std::vector<const Json*> others;
  Rows rows;
  const auto add = [&](const Json& edge) {
    const auto kind = text(edge, "kind");
    const auto verdict = verdict_words(text(edge, "verdict"));
    const auto ratios = kind == "differs" || !at(edge, "ratio").is_object()
                            ? ""
                            : ratio_with_interval(at(edge, "ratio"), glyphs(true)) + " " + verdict;
    rows.push_back({words(text(edge, "from") + " → " + text(edge, "to")), words(kind), words(edge_words(edge)),
                    number_cell(kind == "step" ? edge_difference(edge) : ""), number_cell(ratios)});
  };
  for (const auto& node : ledger_nodes(one_case, others))
    if (node.edge) add(*node.edge);
  for (const Json* edge : others) add(*edge);
  if (rows.empty())
    return section(where, "ledger", "Ledger", "<p>No two levels that differ in one thing have a number.</p>");
  return section(
      where, "ledger", "Ledger",
      R"(<p class="note">What one change costs or saves. Solid: one thing changes. Dashed: more than one thing differs, so nothing is attributed. Dotted: a peer, a ratio and no attribution.</p>)" +
          ledger_svg(one_case, where) +
          html_details(
              "The same as a table",
              html_table("The ledger's edges", {"from and to", "kind", "what changes", "difference", "times as fast"},
                         rows, "steps")));
}

}  // namespace strata::report
