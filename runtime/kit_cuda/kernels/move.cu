// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include "kit_cuda/kernels/move.hpp"

namespace kit_cuda {

template <class From, class To>
void convert(Stream stream, Strided<const From> from, Strided<To> to) {
  const auto places = walk<2>({from.view, to.view});
  const From* source = from.data;
  To* target = to.data;
  if (std::is_same_v<From, To> && places.rank <= 1 && places.dense(0) && places.dense(1))
    return copy_on_device(target, source, static_cast<std::size_t>(places.count) * sizeof(To), stream);
  for_each(stream, places.count, [=] KIT_DEVICE(Index i) {
    Index at[2];
    places.find(i, at);
    round_to(target[at[1]], widened(source[at[0]]));
  });
}
template void convert(Stream stream, Strided<const float> from, Strided<float> to);
template void convert(Stream stream, Strided<const float> from, Strided<Bfloat16> to);
template void convert(Stream stream, Strided<const Bfloat16> from, Strided<float> to);
template void convert(Stream stream, Strided<const Bfloat16> from, Strided<Bfloat16> to);

void copy(Stream stream, Source from, Target to) {
  convert(stream, from, to);
}

void fill(Stream stream, Target to, float value) {
  const auto places = walk<1>({to.view});
  float* target = to.data;
  for_each(stream, places.count, [=] KIT_DEVICE(Index i) {
    Index at[1];
    places.find(i, at);
    target[at[0]] = value;
  });
}

void roll(Stream stream, Source from, const Index* shifts, Target to) {
  const View source = from.view, target = to.view;
  View back;  // how far behind an element comes from
  for (int d = 0; d < target.rank; ++d) {
    const Index extent = std::max<Index>(target.extents[d], 1);
    back.extents[d] = (extent - shifts[d] % extent) % extent;
  }
  const float* data = from.data;
  float* into = to.data;
  for_each(stream, target.count(), [=] KIT_DEVICE(Index i) {
    Index read = 0, written = 0;
    for (int d = target.rank - 1; d >= 0; --d) {
      const Index extent = target.extents[d], place = i % extent;
      i /= extent;
      written += place * target.strides[d];
      read += (place + back.extents[d]) % extent * source.strides[d];
    }
    into[written] = data[read];
  });
}

void look_up(Stream stream, const float* table, Index height, Index length, const std::int64_t* rows, Index count,
             float* to, Index* fault) {
  for_each(stream, count * length, [=] KIT_DEVICE(Index i) {
    const Index row = i / length, place = i - row * length;
    const Index source_row = rows[row] < 0 ? rows[row] + height : rows[row];
    const bool there = source_row >= 0 && source_row < height;
    if (!there) *fault = row + 1;
    to[i] = there ? table[source_row * length + place] : 0;
  });
}

// A thread an element of the table: it reads the whole list, so that sums have one order.
void add_rows(Stream stream, const float* from, const std::int64_t* rows, Index count, float* table, Index height,
              Index length, Index* fault) {
  for_each(stream, height * length, [=] KIT_DEVICE(Index i) {
    const Index row = i / length, place = i - row * length;
    float sum = 0;
    for (Index k = 0; k < count; ++k) {
      const Index source_row = rows[k] < 0 ? rows[k] + height : rows[k];
      if (source_row == row) sum += from[k * length + place];
      if (i == 0 && (source_row < 0 || source_row >= height)) *fault = k + 1;
    }
    table[i] = sum;
  });
}

void add_number(Stream stream, const std::int64_t* from, std::int64_t term, std::int64_t* to, Index count) {
  for_each(stream, count, [=] KIT_DEVICE(Index i) { to[i] = from[i] + term; });
}

}  // namespace kit_cuda
