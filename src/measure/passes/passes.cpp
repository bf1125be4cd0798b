// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "measure/passes/pass.hpp"

namespace strata::measure {

namespace {

using Names = std::vector<std::string>;

bool always(const Setting& /*setting*/, const core::Case& /*question*/) {
  return true;
}

bool infers(const core::Case& question) {
  return question.mode == core::Mode::infer;
}

const Pass kPasses[] = {
    {.name =
         [](const Setting&) {
           return Names{"prove", "memory and start"};
         },
     .applies = always,
     .run = prove_levels},
    {.name = [](const Setting&) { return Names{"tune"}; },
     .applies = [](const Setting& setting, const core::Case&) { return setting.options.tuned; },
     .run = tune_levels},
    {.name = [](const Setting&) { return Names{"compare layers"}; },
     .applies = [](const Setting& setting,
                   const core::Case& question) { return setting.options.deep && infers(question); },
     .run = compare_layers},
    {.name =
         [](const Setting& setting) {
           return Names{fmt::format("measure interleaved ({} restarts, {:.0f} s)", setting.effort.restarts,
                                    setting.effort.budget_s)};
         },
     .applies = always,
     .run = measure_levels,
     .in_every_visit = true},
    {.name = [](const Setting&) { return Names{"profile"}; },
     .applies = [](const Setting& setting, const core::Case&) { return setting.options.profile; },
     .run = profile_levels},
    {.name = [](const Setting&) { return Names{"several batch sizes"}; },
     .applies = [](const Setting& setting, const core::Case&) { return !setting.options.dynamic.empty(); },
     .run = visit_batch_sizes},
    {.name = [](const Setting&) { return Names{"serve"}; },
     .applies = [](const Setting& setting,
                   const core::Case& question) { return !setting.options.clients.empty() && infers(question); },
     .run = serve_levels},
    {.name = [](const Setting&) { return Names{"score"}; },
     .applies = [](const Setting& setting,
                   const core::Case& question) { return !setting.options.eval.empty() && infers(question); },
     .run = score_levels}};

}  // namespace

std::span<const Pass> passes() {
  return kPasses;
}

}  // namespace strata::measure
