// SPDX-License-Identifier: Apache-2.0
// Where in the store the parts of a run are. Internal to store/.
#pragma once

#include <array>

namespace strata::store {

#define STRATA_OWN_ROWS "row_id IN (SELECT row_id FROM level_rows WHERE run_id=?1) ORDER BY row_id,"

struct RunPart {
  const char *table, *which;  // the rows that are of run ?1, in an order that is the same in every store
  bool shared;                // with other runs, or made of what those of the run say
};

// In an order in which each refers to what was written before it.
inline constexpr std::array kRunParts{
    RunPart{"machines", "hash IN (SELECT machine_hash FROM runs WHERE run_id=?1)", true},
    RunPart{"environments", "hash IN (SELECT hash FROM run_environments WHERE run_id=?1) ORDER BY hash", true},
    RunPart{"cases", "hash IN (SELECT hash FROM run_cases WHERE run_id=?1) ORDER BY hash", true},
    RunPart{"runs", "run_id=?1", false},
    RunPart{"run_environments", "run_id=?1 ORDER BY name", true},
    RunPart{"run_cases", "run_id=?1 ORDER BY position,hash", false},
    RunPart{"restarts", "run_id=?1 ORDER BY hash,number", false},
    RunPart{"level_rows", "run_id=?1 ORDER BY row_id", false},
    RunPart{"warnings", "run_id=?1 ORDER BY rowid", false},
    RunPart{"blocks", STRATA_OWN_ROWS "instance,restart,round", false},
    RunPart{"series", STRATA_OWN_ROWS "name,axis,repeat,position", false},
    RunPart{"samples", STRATA_OWN_ROWS "place", false}};
// Computed from the others.
inline constexpr RunPart kRunMetrics{"metrics", STRATA_OWN_ROWS "name,setting", false};

#undef STRATA_OWN_ROWS

}  // namespace strata::store
