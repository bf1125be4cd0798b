// SPDX-License-Identifier: Apache-2.0
// The operations that the generator can write for oneDNN: one table, each family a file in operations/.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "generate/emitter.hpp"

namespace strata::generate {

using Emit = void (*)(Emitter&);  // throws Unsupported and graph::ArgumentError
// By ATen's names without overload ("conv2d"), and "strata.*" of steps that passes make.
using Operations = std::map<std::string_view, Emit>;

const Operations& operations();
// The one that writes the step; nullptr: there is none. Typed steps have calculations of their own; what the library
// computes takes floats alone.
Emit emit_of(const compiler::Step& step);
// ATen's names that a graph may have, sorted: those of the table, and those that become views.
std::vector<std::string> known_operations();

void add_layers(Operations& table);    // convolutions, linear layers, matrix products, norms, attention
void add_poolings(Operations& table);  // and reductions
void add_images(Operations& table);    // to other sizes, apart and together
void add_elementwise(Operations& table);
void add_calculations(Operations& table);  // on elements of any type
void add_moves(Operations& table);
void add_recurrences(Operations& table);
void add_places(Operations& table);  // in order, and to computed places
void add_training(Operations& table);

}  // namespace strata::generate
