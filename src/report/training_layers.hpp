// SPDX-License-Identifier: Apache-2.0
// How large activations and gradients are in each layer over a training, as maps, and where they vanish or explode.
#pragma once

#include <optional>

#include "core/case.hpp"
#include "report/document.hpp"
#include "store/record.hpp"

namespace strata::report {

struct LevelSeries {
  const store::Row* row;
  const std::vector<store::Series>* series;
};

// Maps are of the first repeat of the first level that has sizes; sentences of all. nullopt: nobody looked.
std::optional<document::Section> layers_section(const std::vector<LevelSeries>& levels, const core::Recipe& recipe);

}  // namespace strata::report
