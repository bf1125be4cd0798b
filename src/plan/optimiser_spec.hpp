// SPDX-License-Identifier: Apache-2.0
// The `--optimiser` option: sgd:lr=0.01,momentum=0.9,weight_decay=0.0001,nesterov=true,dampening=0,schedule=step/30/0.1
// or adam:lr=0.001,beta1=0.9,beta2=0.999,eps=1e-8,weight_decay=0, or adamw:...
#pragma once

#include <string>

#include "common/result.hpp"
#include "core/optimiser.hpp"

namespace strata::plan {

// Errors name the part that is wrong and what is allowed.
Result<core::Optimiser> parse_optimiser(const std::string& text);

}  // namespace strata::plan
