// SPDX-License-Identifier: Apache-2.0
// What a layer of a recurrent network computes at every step: an RNN by a ReLU or the hyperbolic tangent, an LSTM, a
// GRU; and what a library keeps of it for the gradients.
#pragma once

#include <algorithm>
#include <cstdint>

namespace kit {

// By ATen's numbers of `mode`.
enum class Recurrence : std::uint8_t { relu, tangent, lstm, gru };

constexpr std::int64_t gates_of(Recurrence kind) {
  return kind == Recurrence::lstm ? 4 : kind == Recurrence::gru ? 3 : 1;
}

// The most floats of oneDNN 3's workspace of a layer in one direction, as its sources add them up: the gates of all
// steps, several rows of states for each step and the one before the first (with their gradients, of an LSTM with
// cells), of a GRU a further part of its gate; rows begin at whole lines that are no multiple of 256 elements, parts at
// whole pages. The library says how many it is only where it is called.
constexpr std::int64_t most_workspace_floats(Recurrence kind, std::int64_t steps, std::int64_t batch,
                                             std::int64_t inputs, std::int64_t hidden) {
  constexpr std::int64_t line = 16, page = 1024, parts = 12;
  const auto row = [](std::int64_t elements) {
    const auto whole = (elements + line - 1) / line * line;
    return whole % 256 == 0 ? whole + line : whole;
  };
  const std::int64_t states = kind == Recurrence::lstm ? 15 : kind == Recurrence::gru ? 14 : 11;
  const std::int64_t more = kind == Recurrence::gru ? row(hidden) : 0;
  return batch *
             (steps * (row(gates_of(kind) * hidden) + more) + states * (steps + 1) * row(std::max(inputs, hidden))) +
         parts * page;
}

}  // namespace kit
