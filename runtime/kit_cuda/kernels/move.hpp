// SPDX-License-Identifier: Apache-2.0
// Values put elsewhere: other layouts, parts, broadcasts, rolls, rows of a table. Nothing is computed.
#pragma once

#include "kit_cuda/kernels/bfloat16.hpp"
#include "kit_cuda/kernels/view.hpp"

namespace kit_cuda {

// To the same elements in other places: a reorder, a permutation, a part of a tensor, a broadcast written out.
void copy(Stream stream, Source from, Target to);
// The same between float and Bfloat16, each of both.
template <class From, class To>
void convert(Stream stream, Strided<const From> from, Strided<To> to);
void fill(Stream stream, Target to, float value);
// to[i + shift] = from[i] along each dimension, round the end; shifts of either sign.
void roll(Stream stream, Source from, const Index* shifts, Target to);

// Row i of `to` is row rows[i] of a table of `height` rows, each of `length` elements one behind the other; counted
// from the end if negative. A row that is not there leaves 1 + i in `fault` on the device, and zeros.
void look_up(Stream stream, const float* table, Index height, Index length, const std::int64_t* rows, Index count,
             float* to, Index* fault);

// The reverse, its gradient: row r of a table is the sum of the rows i with rows[i] = r.
void add_rows(Stream stream, const float* from, const std::int64_t* rows, Index count, float* table, Index height,
              Index length, Index* fault);

void add_number(Stream stream, const std::int64_t* from, std::int64_t term, std::int64_t* to, Index count);

}  // namespace kit_cuda
