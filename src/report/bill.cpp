// SPDX-License-Identifier: Apache-2.0
#include "report/bill.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace strata::report {

std::string break_even_words(const Json& break_even, const Glyphs& glyphs, const char* no_cost) {
  if (!break_even.is_object()) return glyphs.missing;
  if (flag(break_even, "never")) return "never";
  if (flag(break_even, "inconclusive")) return "inconclusive";
  const auto value = number(break_even, "iterations"), low = number(break_even, "low"),
             high = number(break_even, "high");
  if (!value) return glyphs.missing;
  if (*value <= 0) return no_cost;
  if (*value < 1) return "at once";
  if (!low) return count(*value);
  if (!high) return fmt::format("{} (from {})", count(*value), count(*low));  // the gain may be next to nothing
  return fmt::format("{} ({} to {})", count(*value), count(*low), count(*high));
}

BillTable bill_table(const Json& one_case, const Glyphs& glyphs) {
  BillTable out;
  for (const Json* row : sorted_rows(one_case)) {
    if (!is_measured(*row) || flag(*row, "harness")) continue;
    const auto cell = [&](const char* path, std::string (*write)(double)) {
      const auto value = number(*row, path);
      return value ? write(*value) : glyphs.missing;
    };
    const auto again = number(*row, "startup.again_ms"), ever = number(*row, "startup.first_ever_ms");
    out.rows.push_back({level_name(*row), ever && again ? duration(std::max(0.0, *ever - *again)) : glyphs.missing,
                        cell("startup.again_ms", duration),
                        break_even_words(at(*row, "break_even_once"), glyphs, "costs no more"),
                        break_even_words(at(*row, "break_even"), glyphs), cell("startup.weights_ms", duration),
                        cell("memory.peak_private_bytes", size), cell("memory.steady_pss_bytes", size),
                        cell("shipped.bytes", size), cell("lines.total", count)});
  }
  if (!out.rows.empty())
    out.header = {"level",  "built once",  "each start", "repaid: built once", "repaid: each start", "weights in",
                  "memory", "share (PSS)", "to ship",    "lines to keep"};
  return out;
}

std::string fact_words(const Json& row) {
  std::string out;
  const auto add = [&](const std::string& words) { out += (out.empty() ? "" : "; ") + words; };
  if (const auto graphs = number(row, "facts.graphs")) add(count(*graphs) + (*graphs == 1 ? " graph" : " graphs"));
  if (const auto guards = number(row, "facts.guards")) {
    const auto us = number(row, "facts.guard_us");
    add(count(*guards) + " guards" + (us ? ", " + duration(*us * 1e-3) + " a call" : ""));
  }
  if (const auto again = number(row, "facts.recompiles"); again && *again > 0) {
    add(count(*again) + " compiled again");
    for (const auto& reason : list(row, "facts.recompile_reasons"))
      if (reason.is_string()) out += ", " + reason.get<std::string>();
  }
  if (const auto bailouts = number(row, "facts.bailouts")) add(count(*bailouts) + " bailouts");
  return out;
}

}  // namespace strata::report
