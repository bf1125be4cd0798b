// SPDX-License-Identifier: Apache-2.0
// How large activations and gradients are in each layer over a training, as maps, and where they vanish or explode.
#pragma once

#include <optional>

#include "core/case.hpp"
#include "report/document.hpp"
#include "report/trained_level.hpp"

namespace strata::report {

// Maps are of the first repeat of the first measured level that has sizes; sentences of all. nullopt: nobody looked.
std::optional<document::Section> layers_section(const std::vector<TrainedLevel>& levels, const core::Recipe& recipe);

}  // namespace strata::report
