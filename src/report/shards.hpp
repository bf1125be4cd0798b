// SPDX-License-Identifier: Apache-2.0
// What a report says of a run that is several shards joined (cluster/join.hpp): who did which part, and where.
#pragma once

#include <optional>
#include <string>

#include "report/document.hpp"
#include "store/record.hpp"

namespace strata::report {

// Of several machines their peaks, too. nullopt: the run is no join.
std::optional<document::Section> shards_section(const store::Run& run);

// A column with the machine of each point in the table "points" of this section, where there are several.
void add_machines(document::Section& section, const store::Run& run);

// How the points that were not reached are: "./strata resume RUN goes on".
std::string how_to_go_on(const store::Run& run);

// What comes before the first sentence of a run that was cut off, goes on now, or was resumed: "Resumed once after it
// was cut off. "; empty of all others.
std::string ending_words(const store::Run& run);
std::string resumed_words(const store::Run& run);  // the part about what was resumed

}  // namespace strata::report
