// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "kit_cuda/kernels/normalisation.hpp"

namespace kit_cuda {
namespace {

// A view's stride from channel to channel, and the view of one channel.
struct Channel {
  Index stride;
  View view;
};
Channel channel_of(const View& view) {
  return {view.strides[1], without(view, 1)};
}

KIT_DEVICE inline void run_on(float old, double batch, double momentum, float* to) {
  *to = static_cast<float>((1 - momentum) * static_cast<double>(old) + momentum * batch);
}

KIT_DEVICE inline float element(const float* data, Index c, float without) {
  return data == nullptr ? without : data[c];
}

}  // namespace

void batch_norm(Stream stream, const BatchNorm& description) {
  const BatchNorm how = description;
  const auto x = channel_of(how.x.view), summand = channel_of(view_or(how.summand, how.y.view)),
             y = channel_of(how.y.view);
  const auto places = walk<3>({x.view, summand.view, y.view});
  const Index channels = how.x.view.extents[1], count = places.count;
  const Index x_step = x.stride, summand_step = summand.stride, y_step = y.stride;
  for_each_row(stream, channels, count, !places.dense(2), [=] KIT_DEVICE(Index c, const Team& team) {
    const float *from = how.x.data + c * x_step, *more = how.summand.data;
    Index at[3];
    // differences to one of the values, so that a mean that is large beside the deviation costs no digits
    const double about = from[0];
    double sum = 0, squares = 0;
    for (Index i = team.index; i < count; i += team.size) {
      places.find(i, at);
      const double distance = from[at[0]] - about;
      sum += distance;
      squares += distance * distance;
    }
    const double shifted = team.sum(sum) / static_cast<double>(count),
                 variance = team.sum(squares) / static_cast<double>(count) - shifted * shifted, mean = about + shifted,
                 deviation = 1 / sqrt((variance > 0 || variance != variance ? variance : 0) + how.epsilon);
    const auto kept_mean = static_cast<float>(mean), kept_deviation = static_cast<float>(deviation);
    const float scale = kept_deviation * element(how.scale, c, 1), shift = element(how.shift, c, 0);
    for (Index i = team.index; i < count; i += team.size) {
      places.find(i, at);
      float normalised = (from[at[0]] - kept_mean) * scale + shift;
      if (more != nullptr) normalised += more[c * summand_step + at[1]];
      how.y.data[c * y_step + at[2]] = normalised < how.low ? how.low : normalised > how.high ? how.high : normalised;
    }
    if (!team.leads()) return;
    how.mean[c] = kept_mean;
    how.deviation[c] = kept_deviation;
    const double n = static_cast<double>(count);
    if (how.new_mean != nullptr) run_on(how.old_mean[c], mean, how.momentum, how.new_mean + c);
    if (how.new_variance != nullptr)
      run_on(how.old_variance[c], variance * n / (n - 1), how.momentum, how.new_variance + c);
  });
}

void run_statistics(Stream stream, const RunningStatistics& description) {
  const RunningStatistics how = description;
  const double n = static_cast<double>(how.count), factor = n / (n - 1);
  for_each(stream, how.channels, [=] KIT_DEVICE(Index c) {
    const double deviation = how.deviation[c], variance = 1 / (deviation * deviation) - how.epsilon;
    run_on(how.old_mean[c], how.mean[c], how.momentum, how.new_mean + c);
    run_on(how.old_variance[c], variance * factor, how.momentum, how.new_variance + c);
  });
}

void batch_norm_backward(Stream stream, const BatchNormBackward& description) {
  const BatchNormBackward how = description;
  const View like = how.x.view;
  const auto gradient = channel_of(how.gradient.view), summand = channel_of(view_or(how.summand, like)),
             activated = channel_of(view_or(how.activated, like)), x = channel_of(like),
             masked = channel_of(view_or(how.masked, like)), of_x = channel_of(view_or(how.of_x, like));
  // the source leads: it is there even where only the gradients of scale and shift are wanted
  const auto places = walk<6>({gradient.view, summand.view, activated.view, of_x.view, masked.view, x.view});
  const Index count = places.count, gradient_step = gradient.stride, summand_step = summand.stride,
              activated_step = activated.stride, x_step = x.stride, of_x_step = of_x.stride,
              masked_step = masked.stride;
  for_each_row(stream, like.extents[1], count, !places.dense(5), [=] KIT_DEVICE(Index c, const Team& team) {
    const auto incoming = [&](const Index* at) {
      float g = how.gradient.data[c * gradient_step + at[0]];
      if (how.summand.data != nullptr) g += how.summand.data[c * summand_step + at[1]];
      if (how.activated.data == nullptr) return g;
      const float y = how.activated.data[c * activated_step + at[2]];
      return y > how.low && y < how.high ? g : 0.0F;
    };
    const float mean = how.mean[c];
    const bool fixed = how.variance != nullptr;
    const float deviation =
        fixed ? static_cast<float>(1 / sqrt(static_cast<double>(how.variance[c]) + how.epsilon)) : how.deviation[c];
    Index at[6];
    double sum = 0, product = 0;
    for (Index i = team.index; i < count; i += team.size) {
      places.find(i, at);
      const float g = incoming(at);
      sum += g;
      product += static_cast<double>(g) * ((how.x.data[c * x_step + at[5]] - mean) * deviation);
    }
    sum = team.sum(sum);
    product = team.sum(product);
    const float scale = element(how.scale, c, 1) * deviation;
    const auto flat = static_cast<float>(fixed ? 0 : sum / static_cast<double>(count)),
               slope = static_cast<float>(fixed ? 0 : product / static_cast<double>(count));
    for (Index i = team.index; i < count; i += team.size) {
      places.find(i, at);
      const float g = incoming(at), normal = (how.x.data[c * x_step + at[5]] - mean) * deviation;
      if (how.masked.data != nullptr) how.masked.data[c * masked_step + at[4]] = g;
      if (how.of_x.data != nullptr) how.of_x.data[c * of_x_step + at[3]] = scale * (g - flat - normal * slope);
    }
    if (!team.leads()) return;
    if (how.of_scale != nullptr) how.of_scale[c] = static_cast<float>(product);
    if (how.of_shift != nullptr) how.of_shift[c] = static_cast<float>(sum);
  });
}

void layer_norm(Stream stream, const LayerNorm& description) {
  const LayerNorm how = description;
  const Index length = how.length;
  for_each_row(stream, how.rows, length, false, [=] KIT_DEVICE(Index row, const Team& team) {
    const float* from = how.x + row * length;
    double sum = 0, squares = 0;
    for (Index i = team.index; i < length; i += team.size) sum += from[i];
    const double mean = team.sum(sum) / static_cast<double>(length);
    for (Index i = team.index; i < length; i += team.size) squares += (from[i] - mean) * (from[i] - mean);
    const double deviation = 1 / sqrt(team.sum(squares) / static_cast<double>(length) + how.epsilon);
    for (Index i = team.index; i < length; i += team.size) {
      const auto normal = static_cast<float>((from[i] - mean) * deviation);
      how.y[row * length + i] = normal * element(how.scale, i, 1) + element(how.shift, i, 0);
    }
    if (!team.leads()) return;
    if (how.mean != nullptr) how.mean[row] = static_cast<float>(mean);
    if (how.deviation != nullptr) how.deviation[row] = static_cast<float>(deviation);
  });
}

namespace {

void differentiate_rows(Stream stream, const LayerNormBackward& description) {
  const LayerNormBackward how = description;
  const Index length = how.length;
  for_each_row(stream, how.rows, length, false, [=] KIT_DEVICE(Index row, const Team& team) {
    const float *from = how.x + row * length, *above = how.gradient + row * length;
    const float mean = how.mean[row], deviation = how.deviation[row];
    double sum = 0, product = 0;
    for (Index i = team.index; i < length; i += team.size) {
      const float g = above[i] * element(how.scale, i, 1);
      sum += g;
      product += static_cast<double>(g) * ((from[i] - mean) * deviation);
    }
    const auto flat = static_cast<float>(team.sum(sum) / static_cast<double>(length)),
               slope = static_cast<float>(team.sum(product) / static_cast<double>(length));
    for (Index i = team.index; i < length; i += team.size)
      how.of_x[row * length + i] =
          deviation * (above[i] * element(how.scale, i, 1) - flat - (from[i] - mean) * deviation * slope);
  });
}

// A column each, next to each other in memory.
void sum_columns(Stream stream, const LayerNormBackward& description) {
  const LayerNormBackward how = description;
  const Index length = how.length, rows = how.rows;
  for_each_row(stream, length, rows, true, [=] KIT_DEVICE(Index column, const Team& team) {
    double sum = 0, product = 0;
    for (Index row = team.index; row < rows; row += team.size) {
      const Index at = row * length + column;
      const float g = how.gradient[at];
      sum += g;
      product += static_cast<double>(g) * ((how.x[at] - how.mean[row]) * how.deviation[row]);
    }
    sum = team.sum(sum);
    product = team.sum(product);
    if (!team.leads()) return;
    if (how.of_scale != nullptr) how.of_scale[column] = static_cast<float>(product);
    if (how.of_shift != nullptr) how.of_shift[column] = static_cast<float>(sum);
  });
}

}  // namespace

void layer_norm_backward(Stream stream, const LayerNormBackward& how) {
  if (how.of_x != nullptr) differentiate_rows(stream, how);
  if (how.of_scale != nullptr || how.of_shift != nullptr) sum_columns(stream, how);
}

}  // namespace kit_cuda
