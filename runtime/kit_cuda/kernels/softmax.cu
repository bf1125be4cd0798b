// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "kit_cuda/kernels/softmax.hpp"

namespace kit_cuda {

void softmax(Stream stream, Source x, int axis, bool logarithm, Target y) {
  const auto rows = walk<2>({without(broadcast(x.view, y.view), axis), without(y.view, axis)});
  const Index length = y.view.extents[axis], step = x.view.strides[axis], to_step = y.view.strides[axis];
  const float* from = x.data;
  float* to = y.data;
  for_each_row(stream, rows.count, length, to_step != 1, [=] KIT_DEVICE(Index row, const Team& team) {
    Index at[2];
    rows.find(row, at);
    float most = -INFINITY;
    for (Index i = team.index; i < length; i += team.size) {
      const float element = from[at[0] + i * step];
      if (element > most || element != element) most = element;
    }
    most = team.largest(most);
    double sum = 0;
    for (Index i = team.index; i < length; i += team.size)
      sum += exp(static_cast<double>(from[at[0] + i * step]) - static_cast<double>(most));
    sum = team.sum(sum);
    const double shift = log(sum), share = 1 / sum;
    for (Index i = team.index; i < length; i += team.size) {
      const double above = static_cast<double>(from[at[0] + i * step]) - static_cast<double>(most);
      to[at[1] + i * to_step] = static_cast<float>(logarithm ? above - shift : exp(above) * share);
    }
  });
}

void softmax_backward(Stream stream, Source gradient, Source y, int axis, bool logarithm, Target to) {
  const auto rows = walk<3>({without(gradient.view, axis), without(y.view, axis), without(to.view, axis)});
  const Index length = to.view.extents[axis], from_step = gradient.view.strides[axis], step = y.view.strides[axis],
              to_step = to.view.strides[axis];
  const float *from = gradient.data, *result = y.data;
  float* into = to.data;
  for_each_row(stream, rows.count, length, to_step != 1, [=] KIT_DEVICE(Index row, const Team& team) {
    Index at[3];
    rows.find(row, at);
    double sum = 0;
    for (Index i = team.index; i < length; i += team.size) {
      const double g = from[at[0] + i * from_step];
      sum += logarithm ? g : g * static_cast<double>(result[at[1] + i * step]);
    }
    sum = team.sum(sum);
    for (Index i = team.index; i < length; i += team.size) {
      const double g = from[at[0] + i * from_step], own = result[at[1] + i * step];
      into[at[2] + i * to_step] = static_cast<float>(logarithm ? g - exp(own) * sum : own * (g - sum));
    }
  });
}

void likelihood(Stream stream, Source scores, const std::int64_t* labels, float* loss, float* count, Index* fault) {
  const View view = scores.view;
  const float* score = scores.data;
  const Index rows = view.extents[0], classes = view.extents[1];
  for_each_row(stream, 1, rows, false, [=] KIT_DEVICE(Index, const Team& team) {
    double sum = 0;
    for (Index row = team.index; row < rows; row += team.size) {
      const Index label = labels[row];
      const bool there = label >= 0 && label < classes;
      if (there) sum -= static_cast<double>(score[row * view.strides[0] + label * view.strides[1]]);
      if (!there) *fault = row + 1;
    }
    sum = team.sum(sum);
    if (!team.leads()) return;
    *loss = static_cast<float>(sum / static_cast<double>(rows));
    if (count != nullptr) *count = static_cast<float>(rows);
  });
}

void likelihood_backward(Stream stream, const float* gradient, const std::int64_t* labels, Target to) {
  const View view = to.view;
  float* into = to.data;
  for_each(stream, view.count(), [=] KIT_DEVICE(Index i) {
    const Index row = i / view.extents[1], label = i - row * view.extents[1];
    const float share = -(gradient == nullptr ? 1 : *gradient) / static_cast<float>(view.extents[0]);
    into[row * view.strides[0] + label * view.strides[1]] = labels[row] == label ? share : 0;
  });
}

}  // namespace kit_cuda
