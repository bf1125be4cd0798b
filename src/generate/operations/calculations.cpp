// SPDX-License-Identifier: Apache-2.0
// Calculations on elements of any type (kit/elements.hpp): what reads or writes whole numbers and truths, and functions
// that the library has no call for.
#include <fmt/format.h>

#include <limits>

#include "generate/operations.hpp"
#include "graph/calculation.hpp"

namespace strata::generate {
namespace {

// As it is written where an Operand is taken.
std::string operand_of(const Emitter& e, const graph::Calculation::Operand& operand) {
  if (operand.value >= 0) return e.tensor(operand.value);
  if (!operand.is_whole) return double_literal(operand.number);
  // the least int64 has no literal
  return operand.whole == std::numeric_limits<std::int64_t>::min() ? "std::numeric_limits<std::int64_t>::min()"
                                                                   : fmt::format("std::int64_t{{{}}}", operand.whole);
}

void calculate(Emitter& e) {
  const auto calculation = e.calculation();
  if (!calculation) throw Unsupported("a case of it that is not known");
  if (e.target() == compiler::Target::cuda) throw Unsupported("on a GPU");
  if (e.layout(e.output()) != compiler::Layout::plain) throw Unsupported("another layout than row-major");
  static constexpr const char* names[] = {"left", "right", "third"};
  Fields fields{{"how", "Calculation::" + calculation->how}};
  for (std::size_t i = 0; i < calculation->operands.size(); ++i)
    fields.emplace_back(names[i], operand_of(e, calculation->operands[i]));
  fields.emplace_back("result", e.result());
  fields.emplace_back("in_float", calculation->in_float ? "true" : "");
  e.call("calculate", fields);
}

// The library squares, and takes roots; it knows no power of two tensors.
void power(Emitter& e) {
  const bool library = !e.step().typed && e.has("exponent") && !e.is_tensor("exponent");
  const double exponent = library ? e.node().number("exponent") : 0;
  if (exponent != 2 && exponent != 0.5) return calculate(e);
  e.call("apply", {{"source", e.tensor(e.self())},
                   {"function", exponent == 2 ? "square()" : "square_root()"},
                   {"result", e.result()}});
}

void refuse(Emitter& /*e*/) {
  throw Unsupported("of whole numbers or truths");
}

// Of elements of any type: calculations and moves. Steps that passes make say their types themselves.
bool takes_any_type(std::string_view name) {
  static const Operations table = [] {
    Operations all;
    add_calculations(all);
    add_moves(all);
    add_places(all);
    return all;
  }();
  return name.starts_with("strata.") || table.contains(name);
}

}  // namespace

void add_calculations(Operations& table) {
  for (const auto name : graph::calculated_operations()) table[name] = calculate;
  table["pow"] = power;
}

Emit emit_of(const compiler::Step& step) {
  const auto name = step.node.operation();
  const auto it = operations().find(name);
  if (it == operations().end()) return nullptr;
  if (!step.typed || takes_any_type(name)) return it->second;
  return graph::is_calculated_where_typed(name) ? calculate : refuse;
}

}  // namespace strata::generate
