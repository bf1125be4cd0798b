// SPDX-License-Identifier: Apache-2.0
// What the rules of several families need: axes, broadcasting, types, counting. Everything throws ShapeError.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <utility>

#include "graph/operations.hpp"

namespace strata::graph {

template <class... Args>
void need(bool holds, fmt::format_string<Args...> text, Args&&... args) {
  if (!holds) throw ShapeError(fmt::format(text, std::forward<Args>(args)...));
}

// Index of an axis that may count from the end. `rank` 0 is taken as 1, as ATen does.
std::size_t axis_of(std::int64_t dim, std::size_t rank);
// All axes for an empty list.
std::vector<bool> axes_of(const std::vector<std::int64_t>& dims, std::size_t rank);

Shape broadcast(const Shape& a, const Shape& b);
// ATen's type of an arithmetic result: dimensions count more than scalars, unless of a higher kind (bool, integer,
// float).
Type promote(const Value& a, const Value& b);
Type promote_with_number(const Value& a, const nlohmann::json& number);
// The type of what always gives a float: float32 for integers.
Type float_of(Type type);
Type type_argument(const Call& call, std::string_view arg, Type otherwise);

// Saturating.
std::int64_t times(std::int64_t a, std::int64_t b);
std::int64_t product(std::initializer_list<std::int64_t> factors);
std::int64_t elements(const Shape& shape);

// Of all that a backward operation can give, those whose flag in `output_mask` is set: the others are no outputs.
std::vector<Described> masked(const Call& call, const std::vector<Described>& all);

// Counts that operations share; each saturates. Of a convolution `transposed` is asked where the call has it.
std::int64_t convolution_flops(const Call& call);
std::int64_t transposed_convolution_flops(const Call& call);
std::int64_t matmul_flops(const Call& call);
std::int64_t addmm_flops(const Call& call);
std::int64_t attention_flops(const Call& call);

// Rules of many.
std::vector<Described> same_as_self(const Call& call);
std::vector<Described> float_like_self(const Call& call);

std::span<const Operation> convolution_operations();
std::span<const Operation> normalisation_operations();
std::span<const Operation> activation_operations();
std::span<const Operation> image_operations();
std::span<const Operation> pooling_operations();
std::span<const Operation> linear_operations();
std::span<const Operation> einsum_operations();
std::span<const Operation> attention_operations();
std::span<const Operation> arithmetic_operations();
std::span<const Operation> reduction_operations();
std::span<const Operation> recurrent_operations();
std::span<const Operation> view_operations();
std::span<const Operation> shape_operations();
std::span<const Operation> loss_operations();
std::span<const Operation> backward_operations();

}  // namespace strata::graph
