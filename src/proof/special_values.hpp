// SPDX-License-Identifier: Apache-2.0
// What becomes of a NaN and of an infinity in an input: a maximum that drops them makes a confident answer of what
// eager answers with NaN. Told, in the certificate and as a warning; it decides nothing, since no input that is proven
// or timed holds one.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "common/safetensors.hpp"

namespace strata::proof {

// The inputs (two entries: of a NaN, of an infinity) and eager's answers, as docs/bundle.md names them.
std::filesystem::path special_inputs(const std::filesystem::path& bundle);
std::filesystem::path special_answers(const std::filesystem::path& bundle);

// "drops NaN: 12 of 12 values are numbers where eager's are NaN"; empty: where eager's answers are no numbers, the
// level's are none either. nullopt: an answer is missing or has another shape.
std::optional<std::string> lost_specials(const SafeTensors& expected, const SafeTensors& actual);

}  // namespace strata::proof
