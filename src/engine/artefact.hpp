// SPDX-License-Identifier: Apache-2.0
// A level's artefact for a bundle, for the verbs that ship one.
#pragma once

#include "engine/events.hpp"
#include "plan/jobs.hpp"

namespace strata::engine {

// Prepared unless it lies in the cache; the job says where. Error: the level cannot run the bundle here (environment),
// or its prepare command failed.
Result<plan::Job> get_artefact(const level::Level& level, const plan::Bundle& bundle,
                               const plan::Environments& environments, const Installation& place,
                               const plan::Options& options, EventSink& events);

}  // namespace strata::engine
