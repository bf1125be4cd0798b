// SPDX-License-Identifier: Apache-2.0
// Loops of a training step that oneDNN has no call for: losses of labels, log-softmax in float64, dropout, masks.
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include "kit/internals.hpp"
#include "kit/training.hpp"

namespace kit {
namespace {

float* data_of(const memory& tensor) {
  return static_cast<float*>(tensor.get_data_handle());
}

struct Rows {
  memory source, result;
  Extent rows, classes;
};
Rows rows_of(Internals& in, const Tensor& source, const Tensor& result, const Shape& scores) {
  if (scores.rank != 2) throw std::logic_error("scores that are not [batch, classes]");
  return {in.handle(source, desc_of(source)), in.handle(result, desc_of(result)), scores[0], scores[1]};
}

struct LogSoftmax : Rows {
  void operator()() const {
#pragma omp parallel for schedule(static)
    for (Extent row = 0; row < rows; ++row) {
      const float* from = data_of(source) + row * classes;
      float* to = data_of(result) + row * classes;
      double most = -INFINITY, sum = 0;
      for (Extent i = 0; i < classes; ++i) most = std::max(most, static_cast<double>(from[i]));
      for (Extent i = 0; i < classes; ++i) sum += std::exp(static_cast<double>(from[i]) - most);
      const double shift = most + std::log(sum);
      for (Extent i = 0; i < classes; ++i) to[i] = static_cast<float>(static_cast<double>(from[i]) - shift);
    }
  }
};

struct LogSoftmaxGradient : Rows {
  memory log_softmax;
  void operator()() const {
#pragma omp parallel for schedule(static)
    for (Extent row = 0; row < rows; ++row) {
      const float *gradient = data_of(source) + row * classes, *y = data_of(log_softmax) + row * classes;
      float* to = data_of(result) + row * classes;
      double sum = 0;
      for (Extent i = 0; i < classes; ++i) sum += static_cast<double>(gradient[i]);
      for (Extent i = 0; i < classes; ++i)
        to[i] = static_cast<float>(static_cast<double>(gradient[i]) - std::exp(static_cast<double>(y[i])) * sum);
    }
  }
};

struct Likelihood : Rows {
  const TrainingState* training;
  std::int64_t label(Extent row) const {
    if (training->labels == nullptr) throw std::logic_error("no labels are set");
    std::int64_t target = 0;  // the caller's memory need not be aligned
    std::memcpy(&target, reinterpret_cast<const std::byte*>(training->labels) + row * 8, sizeof target);
    if (target < 0 || target >= classes)
      throw std::out_of_range("the label " + std::to_string(target) + " of " + std::to_string(classes) + " classes");
    return target;
  }
};

struct Loss : Likelihood {
  void operator()() const {
    double sum = 0;
    for (Extent row = 0; row < rows; ++row) sum -= static_cast<double>(data_of(source)[row * classes + label(row)]);
    *data_of(result) = static_cast<float>(sum / static_cast<double>(rows));
  }
};

struct LossGradient : Likelihood {
  void operator()() const {
    float* to = data_of(result);
    std::memset(to, 0, static_cast<std::size_t>(rows * classes) * sizeof(float));
    for (Extent row = 0; row < rows; ++row) to[row * classes + label(row)] = -1 / static_cast<float>(rows);
  }
};

// splitmix64 (Steele, Lea and Flood 2014): each element has a number of its own, of its place and of the step, so that
// threads need not share a generator.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// A product, so that no branch depends on what was drawn; of a NaN it is one, as in PyTorch.
float masked(float value, std::uint8_t keeps, float scale) {
  return value * (static_cast<float>(keeps) * scale);
}

struct Dropped {
  memory source, result, mask;
  Extent count;
  std::uint64_t layer, limit;
  float scale;
  TrainingState* training;

  void operator()() const {
    const float* from = data_of(source);
    float* to = data_of(result);
    auto* keeps = static_cast<std::uint8_t*>(mask.get_data_handle());
    if (!training->dropout) {
      if (to != from) std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
      return;
    }
    const auto key = mixed(layer + ++training->draws);
#pragma omp parallel for schedule(static)
    for (Extent begin = 0; begin < count; begin += piece) {
      const Extent end = std::min(begin + piece, count);
      for (Extent i = begin; i < end; ++i)
        keeps[i] = static_cast<std::uint8_t>((mixed(key + static_cast<std::uint64_t>(i)) >> 11) < limit);
#pragma omp simd
      for (Extent i = begin; i < end; ++i) to[i] = masked(from[i], keeps[i], scale);
    }
  }
  static constexpr Extent piece = 1024;  // what is drawn is applied while it is in the cache
};

// What the mask keeps, scaled: the gradient, or the result once more.
struct Masked {
  memory source, result, mask;
  Extent count;
  float scale;
  const TrainingState* training;
  void operator()() const {
    const float* from = data_of(source);
    float* to = data_of(result);
    const auto* keeps = static_cast<const std::uint8_t*>(mask.get_data_handle());
    if (!training->dropout) {
      if (to != from) std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
      return;
    }
#pragma omp parallel for simd schedule(static)
    for (Extent i = 0; i < count; ++i) to[i] = masked(from[i], keeps[i], scale);
  }
};

struct Clamped {
  memory gradient, activated, result;
  Extent count;
  float low, high;
  void operator()() const {
    const float *from = data_of(gradient), *y = data_of(activated);
    float* to = data_of(result);
#pragma omp parallel for simd schedule(static)
    for (Extent i = 0; i < count; ++i) to[i] = y[i] > low && y[i] < high ? from[i] : 0.0F;
  }
};

// Elements with padding.
Extent count_of(const Tensor& tensor) {
  return static_cast<Extent>(desc_of(tensor).get_size() / sizeof(float));
}
void need_alike(const Tensor& a, const Tensor& b) {
  if (a.layout != b.layout || a.shape.elements() != b.shape.elements())
    throw std::logic_error("tensors of an element-wise operation in two layouts");
}
float scale_of(const Dropout& how) {
  return how.p == 1 ? 0.0F : static_cast<float>(1 / (1 - how.p));
}

}  // namespace

void exact_log_softmax(Program& program, const Scores& how) {
  Internals& in = program.internals();
  in.add_own(LogSoftmax{rows_of(in, how.source, how.result, how.source.shape)}, false, "kit:log_softmax");
}

void log_softmax_backward(Program& program, const LogSoftmaxBackward& how) {
  Internals& in = program.internals();
  in.add_own(
      LogSoftmaxGradient{rows_of(in, how.gradient, how.result, how.gradient.shape), handle_of(in, how.log_softmax)},
      false, "kit:log_softmax_backward");
}

void negative_log_likelihood(Program& program, const Scores& how) {
  Internals& in = program.internals();
  in.add_own(Loss{{rows_of(in, how.source, how.result, how.source.shape), &in.training}}, false, "kit:loss");
}

void negative_log_likelihood_backward(Program& program, const Scores& how) {
  Internals& in = program.internals();
  in.add_own(LossGradient{{rows_of(in, how.source, how.result, how.source.shape), &in.training}}, false,
             "kit:loss_backward");
}

void dropout(Program& program, const Dropout& how) {
  Internals& in = program.internals();
  need_alike(how.source, how.result);
  ++in.training.dropouts;
  const auto limit = static_cast<std::uint64_t>((1 - how.p) * 9007199254740992.0);  // 2^53
  in.add_own(Dropped{handle_of(in, how.source), handle_of(in, how.result), handle_of(in, how.mask),
                     count_of(how.source), mixed(in.calls.size()), limit, scale_of(how), &in.training},
             false, "kit:dropout");
}

void dropout_again(Program& program, const Dropout& how) {
  Internals& in = program.internals();
  need_alike(how.source, how.result);
  in.add_own(Masked{handle_of(in, how.source), handle_of(in, how.result), handle_of(in, how.mask), count_of(how.source),
                    scale_of(how), &in.training},
             false, "kit:dropout_again");
}

void dropout_backward(Program& program, const DropoutBackward& how) {
  Internals& in = program.internals();
  need_alike(how.gradient, how.result);
  in.add_own(Masked{handle_of(in, how.gradient), handle_of(in, how.result), handle_of(in, how.mask),
                    count_of(how.gradient), how.scale, &in.training},
             false, "kit:dropout_backward");
}

void clamp_backward(Program& program, const ClampBackward& how) {
  Internals& in = program.internals();
  need_alike(how.gradient, how.result);
  need_alike(how.activated, how.result);
  in.add_own(Clamped{handle_of(in, how.gradient), handle_of(in, how.activated), handle_of(in, how.result),
                     count_of(how.gradient), how.low, how.high},
             false, "kit:clamp_backward");
}

}  // namespace kit
