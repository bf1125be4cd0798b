// SPDX-License-Identifier: Apache-2.0
// The backward rules by ATen's name without overload, each in the file of its family.
#pragma once

#include <span>
#include <string_view>

#include "graph/backward/tape.hpp"

namespace strata::graph {

// Gives the wanted inputs of tape.node() their gradients. Called only if an output has one and an input wants one.
using Backward = void (*)(Tape& tape);
// Changes a copy of a forward node so that it also gives what its backward operation reads; adds the values.
using Prepare = void (*)(Tape& tape, Node& node);

struct BackwardRule {
  std::string_view name;
  Backward backward = nullptr;
  Prepare prepare = nullptr;  // nullptr: the node stays as it is
};

const BackwardRule* find_backward(std::string_view operation);  // nullptr: there is none

// What rules of several families need: products and quotients element by element; products of matrices in the last two
// axes, where axes before these are broadcast.
int times(Tape& tape, int value, int other);
int times_number(Tape& tape, int value, const nlohmann::json& number);
int quotient(Tape& tape, int value, int other);
int product(Tape& tape, int a, int b);
int transposed(Tape& tape, int value);
// Of a lookup by several lists, or in other axes than the first.
void give_picked(Tape& tape);

std::span<const BackwardRule> activation_rules();
std::span<const BackwardRule> arithmetic_rules();
std::span<const BackwardRule> attention_rules();
std::span<const BackwardRule> convolution_rules();
std::span<const BackwardRule> dropout_rules();
std::span<const BackwardRule> einsum_rules();
std::span<const BackwardRule> function_rules();
std::span<const BackwardRule> image_rules();
std::span<const BackwardRule> join_rules();
std::span<const BackwardRule> linear_rules();
std::span<const BackwardRule> loss_rules();
std::span<const BackwardRule> move_rules();
std::span<const BackwardRule> normalisation_rules();
std::span<const BackwardRule> place_rules();
std::span<const BackwardRule> pooling_rules();
std::span<const BackwardRule> recurrent_rules();
std::span<const BackwardRule> reduction_rules();
std::span<const BackwardRule> softmax_rules();
std::span<const BackwardRule> view_rules();

}  // namespace strata::graph
