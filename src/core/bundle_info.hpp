// SPDX-License-Identifier: Apache-2.0
// bundle.json of a captured network (docs/bundle.md), checked once: whoever reads a field of it afterwards finds the
// type that the page says, or no field.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/result.hpp"
#include "core/case.hpp"

namespace strata::core {

constexpr int bundle_version = 2;  // of bundle.json; others are refused

// With `id`, the case's (core/case.hpp), which the file does not hold. Error: unreadable, another version, or the first
// field that is not as docs/bundle.md says. `whole`: what a run needs (case, model, ring, outputs) must be there.
Result<nlohmann::json> read_bundle_info(const std::filesystem::path& bundle, bool whole);

// The same for a value that was read elsewhere. `where` names it.
Result<void> check_bundle_info(const nlohmann::json& info, const std::string& where, bool whole);

// Whether the network of a case of mode train returns its loss: its first output is one number, where losses of labels
// take scores.
bool gives_loss(const nlohmann::json& info);

// Whether it was captured light (docs/bundle.md): with what a point of a sweep is proven by, and not the whole.
bool is_light(const nlohmann::json& info);
// Whether its envelope is of three runs of eager alone.
bool has_few_runs(const nlohmann::json& info);

// The case that a bundle was captured for.
Result<Case> case_in(const std::filesystem::path& bundle);

}  // namespace strata::core
