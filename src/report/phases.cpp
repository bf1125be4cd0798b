// SPDX-License-Identifier: Apache-2.0
#include "report/phases.hpp"

#include <algorithm>
#include <array>

namespace strata::report {
namespace {

constexpr std::array<std::pair<const char*, const char*>, 6> kPhases{{{"input", "input"},
                                                                      {"to_device", "to device"},
                                                                      {"forward", "forward"},
                                                                      {"loss", "loss"},
                                                                      {"backward", "backward"},
                                                                      {"update", "update"}}};

std::string path_of(const char* phase) {
  return std::string("phases.ms.") + phase;
}

// The phase that another one's time is part of; "" if it stands alone.
std::string held_by(const Json& row, const std::string& phase) {
  const auto& joined = at(row, "phases.joined");
  if (joined.is_object())
    for (const auto& [holder, held] : joined.items())
      if (holder != phase && std::find(held.begin(), held.end(), Json(phase)) != held.end()) return holder;
  return "";
}

}  // namespace

bool is_training(const Json& one_case) {
  return text(one_case, "case.mode") == "train";
}

PhaseTable phase_table(const Json& one_case, const Glyphs& glyphs) {
  PhaseTable out;
  if (!is_training(one_case)) return out;
  std::vector<const Json*> rows;
  for (const Json* row : sorted_rows(one_case))
    if (is_measured(*row) && !flag(*row, "harness")) rows.push_back(row);
  const auto shown = [&](const char* phase) {
    return std::any_of(rows.begin(), rows.end(),
                       [&](const Json* row) { return number(*row, path_of(phase)) || !held_by(*row, phase).empty(); });
  };
  out.header = {"level", "samples/s", "steps/s"};
  for (const auto& [phase, title] : kPhases)
    if (shown(phase)) out.header.emplace_back(title);
  for (const Json* row : rows) {
    const auto rate = [&](const char* path) {
      const auto value = number(*row, path);
      return value ? count(*value) : glyphs.missing;
    };
    const auto steps = number(*row, "steps_per_s");
    Cells cells{level_name(*row), rate("throughput_per_s"),
                !steps         ? glyphs.missing
                : *steps < 100 ? ratio(*steps)
                               : count(*steps)};
    for (const auto& [phase, title] : kPhases) {
      if (!shown(phase)) continue;
      const auto ms = number(*row, path_of(phase));
      const auto holder = held_by(*row, phase);
      cells.push_back(ms ? duration(*ms) : holder.empty() ? glyphs.missing : "in " + holder);
    }
    out.rows.push_back(std::move(cells));
  }
  return out;
}

}  // namespace strata::report
