// SPDX-License-Identifier: Apache-2.0
// What a level reported of its settings, without what it counted better later, and in words.
#pragma once

#include "report/access.hpp"

namespace strata::report {

// `settings` without what `facts` counts too (graphs, guards, ...), also in objects within: a level reports settings
// when it has loaded the network and facts when all is measured, so that only the facts hold for the whole run.
Json settings_beside(const Json& settings, const Json& facts);

// "threads 2, precision fp32, inference mode yes"; lists and objects within as words too, never as JSON. "" for none.
std::string settings_words(const Json& row);

}  // namespace strata::report
