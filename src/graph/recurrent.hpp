// SPDX-License-Identifier: Apache-2.0
// What one layer of a recurrent network computes in one direction, which is the operation mkldnn_rnn_layer: ATen has it
// for an LSTM, here it stands for GRU and RNN too, and the layers, directions and cells of all are written by it
// (expand.hpp). Of T steps, N samples, I inputs, H hidden elements:
//   mkldnn_rnn_layer(input [T, N, I], weight0 [G H, I], weight1 [G H, H], weight2 [G H] or null, weight3, hx_ [N, H],
//                    cx_ [N, H] or null, reverse, mode, train)
//       -> output [T, N, H], the last state [N, H], of an LSTM the last cell [N, H]; with `train` a workspace behind
//       them, which the library keeps for the gradient. Weights and the order of gates are PyTorch's.
//   mkldnn_rnn_layer_backward(the same, output, hy_, cy_, grad_output, grad_hy, grad_cy, workspace, output_mask)
//       -> gradients of input, weight0 to weight3, hx_ and cx_, those whose flag in the mask is set.
#pragma once

#include <cstdint>
#include <string_view>

#include "graph/operations.hpp"

namespace strata::graph {

// By ATen's numbers for `mode`.
enum class Recurrence : std::uint8_t { relu = 0, tanh = 1, lstm = 2, gru = 3 };

constexpr std::int64_t gates_of(Recurrence kind) {
  return kind == Recurrence::lstm ? 4 : kind == Recurrence::gru ? 3 : 1;
}

struct RecurrentLayer {
  Recurrence kind = Recurrence::tanh;
  std::int64_t steps = 0, batch = 0, inputs = 0, hidden = 0;
};

// Of a node of either operation, its tensors checked. Throws ShapeError and ArgumentError.
RecurrentLayer recurrent_layer(const Call& call);

}  // namespace strata::graph
