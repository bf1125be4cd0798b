// SPDX-License-Identifier: Apache-2.0
// References of captured networks lie apart from what workers read, <cache>/references, so that a worker can be kept
// from the answers that it is judged by. A bundle has a link where they were.
#pragma once

#include <filesystem>
#include <string>

#include "common/places.hpp"
#include "worker/worker.hpp"

namespace strata::plan {

// Of a bundle in <cache>/bundles, by its name.
std::filesystem::path references_of(const std::filesystem::path& bundle);

// Moves every `reference` folder of the bundle there, unless it was done before. Error: it cannot be moved.
Result<void> set_references_apart(const std::filesystem::path& bundle);

// Those of bundles that are there no more.
void remove_lost_references(const std::filesystem::path& bundles);

// A worker of this launch cannot read them. Returns why it can all the same; empty: it cannot. STRATA_SHOW_REFERENCES=1
// leaves them in sight.
std::string hide_references(worker::Launch& launch, const Installation& place);

}  // namespace strata::plan
