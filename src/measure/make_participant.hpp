// SPDX-License-Identifier: Apache-2.0
// A level of a case before anything ran: its job, and what its row says of it whatever comes.
#pragma once

#include "measure/compare.hpp"

namespace strata::measure {

// Not in the store yet. `logs`: the folder of the case's logs.
Result<Participant> make_participant(const level::Level& level, const plan::Bundle& bundle, const Setting& setting,
                                     const std::filesystem::path& logs);

}  // namespace strata::measure
