// SPDX-License-Identifier: Apache-2.0
// Operations on each element of tensors of any type, as a calculation of runtime/kit/elements.hpp: for levels and
// programs whose library calculates with floats alone, or has no call for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.hpp"

namespace strata::graph {

struct Calculation {
  // A tensor, or where `value` is -1 a number, which is whole or not.
  struct Operand {
    int value = -1;
    bool is_whole = false;
    std::int64_t whole = 0;
    double number = 0;
  };
  std::string how;                // a name of kit::Calculation
  std::vector<Operand> operands;  // one to three
  bool in_float = false;          // it is calculated in float32, else in int64
};

// Reads or writes what is neither float32 nor bfloat16.
bool is_typed(const Graph& graph, const Node& node);

// Names of those that no library has a call for, whatever the types; sorted. What libraries have calls for is
// calculated only where it is typed.
std::vector<std::string_view> calculated_operations();
bool is_calculated_where_typed(std::string_view operation);

// nullopt: it is none, or a case that is not known, as a factor of a sum of whole numbers. Throws ArgumentError.
std::optional<Calculation> calculation_of(const Graph& graph, const Node& node);

}  // namespace strata::graph
