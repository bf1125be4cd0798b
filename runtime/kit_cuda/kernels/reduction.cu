// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "kit_cuda/kernels/reduction.hpp"

namespace kit_cuda {
namespace {

// The dimensions along which `y` has one element and `x` several, or the others.
View part_of(const View& x, const View& y, const View& read, bool reduced) {
  View view;
  for (int d = 0; d < x.rank; ++d) {
    if ((x.extents[d] != y.extents[d]) != reduced) continue;
    view.extents[view.rank] = x.extents[d];
    view.strides[view.rank++] = read.strides[d];
  }
  return view;
}

}  // namespace

void reduce(Stream stream, Source x, Reduction how, Target y) {
  if (x.view.rank != y.view.rank) throw std::invalid_argument("a reduction to another number of dimensions");
  const auto inner = walk<1>({part_of(x.view, y.view, x.view, true)});
  const auto outer = walk<2>({part_of(x.view, y.view, x.view, false), part_of(x.view, y.view, y.view, false)});
  const float* from = x.data;
  float* to = y.data;
  const double count = static_cast<double>(inner.count);
  for_each_row(stream, outer.count, inner.count, !inner.dense(0), [=] KIT_DEVICE(Index row, const Team& team) {
    Index at[2], place[1];
    outer.find(row, at);
    double sum = 0;
    float most = -INFINITY;
    for (Index i = team.index; i < inner.count; i += team.size) {
      inner.find(i, place);
      const float element = from[at[0] + place[0]];
      if (how == Reduction::largest)
        most = element > most || element != element ? element : most;
      else
        sum += how == Reduction::norm ? static_cast<double>(element) * element : element;
    }
    if (how == Reduction::largest)
      most = team.largest(most);
    else
      sum = team.sum(sum);
    if (!team.leads()) return;
    to[at[1]] = how == Reduction::largest ? most
                : how == Reduction::norm  ? static_cast<float>(sqrt(sum))
                : how == Reduction::mean  ? static_cast<float>(sum / count)
                                          : static_cast<float>(sum);
  });
}

}  // namespace kit_cuda
