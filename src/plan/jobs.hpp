// SPDX-License-Identifier: Apache-2.0
// Which levels take part in a comparison, and why the others do not.
#pragma once

#include "level/level.hpp"
#include "plan/environment.hpp"
#include "plan/job.hpp"
#include "plan/options.hpp"

namespace strata::plan {

// The levels asked for, or all found that run on the device; sorted by rank. Errors: an unknown name (nearest
// suggested), none left.
Result<std::vector<level::Level>> choose_levels(const level::DiscoveredLevels& installed,
                                                const std::vector<std::string>& names,
                                                const std::string& device = "cpu");

// Why this level cannot run this case (the bundle's, or a whole training of it), judged from level.json, the
// environments and the level's binary alone; nullopt: it may try.
std::optional<worker::Failure> cannot_run(const level::Level& level, const Bundle& bundle, const core::Case& question,
                                          const Environment& environment, const Environment& tools,
                                          const Installation& place);

// Everything needed to start a worker of the level, its cache folder and `log_folder` made. Error: one cannot be made.
Result<Job> make_job(const level::Level& level, const Bundle& bundle, const Installation& place,
                     const Environment& environment, const Options& options, const std::filesystem::path& log_folder);

level::Places places_of(const Installation& place);

}  // namespace strata::plan
