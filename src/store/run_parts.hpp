// SPDX-License-Identifier: Apache-2.0
// Where in the store the parts of a run are. Internal to store/.
#pragma once

#include <array>

namespace strata::store {

#define STRATA_OWN_ROWS "row_id IN (SELECT row_id FROM level_rows WHERE run_id=?1)"

enum class Part {
  own,      // written for the run alone
  derived,  // from what else the run says
  shared    // with other runs
};
struct RunPart {
  const char *table, *where, *order;  // the rows that are of run ?1, in an order that is the same in every store
  Part kind = Part::own;
};

// In an order in which each refers to what was written before it.
inline constexpr std::array kRunParts{
    RunPart{"machines", "hash IN (SELECT machine_hash FROM runs WHERE run_id=?1)", "hash", Part::shared},
    RunPart{"environments", "hash IN (SELECT hash FROM run_environments WHERE run_id=?1)", "hash", Part::shared},
    RunPart{"cases", "hash IN (SELECT hash FROM run_cases WHERE run_id=?1)", "hash", Part::shared},
    RunPart{"runs", "run_id=?1", "run_id"},
    RunPart{"run_environments", "run_id=?1", "name", Part::derived},
    RunPart{"run_cases", "run_id=?1", "position,hash"},
    RunPart{"restarts", "run_id=?1", "hash,number"},
    RunPart{"level_rows", "run_id=?1", "row_id"},
    RunPart{"warnings", "run_id=?1", "rowid"},
    RunPart{"blocks", STRATA_OWN_ROWS, "row_id,instance,restart,round"},
    RunPart{"series", STRATA_OWN_ROWS, "row_id,name,axis,repeat,position"},
    RunPart{"samples", STRATA_OWN_ROWS, "row_id,place"},
    RunPart{"metrics", STRATA_OWN_ROWS, "row_id,name,setting"}};

#undef STRATA_OWN_ROWS

}  // namespace strata::store
