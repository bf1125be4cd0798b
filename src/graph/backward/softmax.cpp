// SPDX-License-Identifier: Apache-2.0
// Softmax and log-softmax along an axis; both backward operations read the result.
#include "graph/backward/rules.hpp"

namespace strata::graph {
namespace {

void through(Tape& tape, const char* op) {
  const int input = tape.node().tensor("self");
  if (tape.type(input) != tape.type(tape.output(0))) throw NoGradient("it changes the type");
  tape.give(input,
            tape.call(op, {tensor_argument("grad_output", *tape.gradient()), tensor_argument("output", tape.output(0)),
                           tape.same("dim"), plain_argument("input_dtype", std::string(name_of(tape.type(input))))}));
}

void softmax(Tape& tape) {
  through(tape, "_softmax_backward_data.default");
}
void log_softmax(Tape& tape) {
  through(tape, "_log_softmax_backward_data.default");
}

}  // namespace

std::span<const BackwardRule> softmax_rules() {
  static constexpr BackwardRule all[] = {
      {"_log_softmax", log_softmax}, {"_softmax", softmax}, {"log_softmax", log_softmax}, {"softmax", softmax}};
  return all;
}

}  // namespace strata::graph
