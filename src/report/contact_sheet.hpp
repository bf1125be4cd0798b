// SPDX-License-Identifier: Apache-2.0
// Some images of a data set on one page, with their classes: what a reader got wrong (planes, rows, labels) is seen at
// once.
#pragma once

#include <string>

#include "data/dataset.hpp"
#include "data/reader.hpp"

namespace strata::report {

// An HTML page that holds its images itself. `count` of them, evenly over the part.
std::string contact_sheet(const data::Dataset& set, data::Part part, std::size_t count);

}  // namespace strata::report
