// SPDX-License-Identifier: Apache-2.0
// Every level alone on the machine: its start, its memory, and equal work on all weight sets.
#include <fmt/format.h>

#include "analysis/warnings.hpp"
#include "common/interrupt.hpp"
#include "measure/passes/pass.hpp"

namespace strata::measure {

Result<void> prove_levels(CaseRun& point) {
  for (auto& participant : point.participants) {
    if (interrupted()) break;
    point.prove(participant);
    if (interrupted()) break;
    if (!participant.active)
      point.progress.note(
          fmt::format("{}: {}: {}", participant.name(), to_string(participant.row.state), participant.row.reason));
    STRATA_TRY(point.sink.row(participant.row));
    if (const auto& specials = participant.evidence.specials; specials && !specials->empty()) {
      auto warning = analysis::warnings::drops_specials(participant.name(), *specials);
      warning.row_id = participant.row.row_id;
      STRATA_TRY(point.warn_once(std::move(warning)));
    }
    std::uintmax_t bytes = 0;
    std::error_code ec;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(participant.job.cache, ec))
      if (entry.is_regular_file(ec)) bytes += entry.file_size(ec);
    participant.row.disk_bytes = static_cast<std::int64_t>(bytes);
  }
  return point.weigh_refusals();
}

}  // namespace strata::measure
