// SPDX-License-Identifier: Apache-2.0
// An einsum of two tensors ("bhid, bhjd -> bhij") as one product of matrices: what each of its labels is.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace strata::graph {

struct MatrixEinsum {
  std::string left, right, result;  // labels of the operands and the result, one an axis
  std::string batch;                // in all three
  std::string rows, columns;        // in the left one and the result; in the right one and the result
  std::string summed;               // in both operands alone
};

// nullopt: not of two tensors, dots, a label twice in one tensor, or one that is in a single tensor alone.
std::optional<MatrixEinsum> matrix_einsum(std::string equation);

// Where each of `wanted` stands among `labels`.
std::vector<std::size_t> places_of(const std::string& axes, const std::string& labels);

}  // namespace strata::graph
