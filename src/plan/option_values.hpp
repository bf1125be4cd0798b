// SPDX-License-Identifier: Apache-2.0
// The values of options that say several things: --input, --dynamic, --optimiser. Errors name the part that is wrong
// and what is allowed.
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"
#include "core/case.hpp"

namespace strata::plan {

// [name=][dtype:]shape[:low..high], as 1x3x224x224, ids=int64:1x128:0..30521 or mask=float32:1x12:1, a constant.
Result<core::Input> parse_input(const std::string& text);
// The range of batch sizes that one artefact must serve: "batch=1..32". Error: another form, an empty range.
Result<core::OpenBatch> parse_dynamic(const std::string& text);
// Those of it that are visited: both ends and the powers of two between them, ascending.
std::vector<int> sizes_between(int low, int high);
// sgd:lr=0.01,momentum=0.9,weight_decay=0.0001,nesterov=true,dampening=0,schedule=step/30/0.1 or
// adam:lr=0.001,beta1=0.9,beta2=0.999,eps=1e-8,weight_decay=0, or adamw:...; each with clip_norm=1
Result<core::Optimiser> parse_optimiser(const std::string& text);

}  // namespace strata::plan
