// SPDX-License-Identifier: Apache-2.0
// What a level reported of its settings: without what it counted better later, in words, and against another level's.
#pragma once

#include "report/access.hpp"

namespace strata::report {

// `settings` without what `facts` counts too (graphs, guards, ...), also in objects within: a level reports settings
// when it has loaded the network and facts when all is measured, so that only the facts hold for the whole run.
Json settings_beside(const Json& settings, const Json& facts);

// "threads 2, precision fp32, inference mode yes"; lists and objects within as words too, never as JSON. "" for none.
std::string settings_words(const Json& row);

// What the ledger compares before it draws an edge as a step:
// "layout: contiguous, blocked" for each of layout, precision, freezing and threads that differs between two levels'
// settings (docs/protocol.md). A layout `any` matches every other; what a level does not report counts as a difference.
std::vector<std::string> setting_differences(const Json& from, const Json& to);

}  // namespace strata::report
