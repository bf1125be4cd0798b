// SPDX-License-Identifier: Apache-2.0
// Batch norm in training, on images in blocks of channels. A thread takes whole blocks, so that all passes over a block
// (its mean, its variance, its result) find it in the core's own cache. Sums run in float32 over short pieces and in
// float64 over these.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "kit/blocks.hpp"
#include "kit/descent.hpp"
#include "kit/training.hpp"

namespace kit {
namespace {

using namespace kernels;

// An image batch in blocks: the elements of block c of image n begin at (n blocks + c) pixels kBlock.
struct Image {
  Extent images = 0, channels = 0, blocks = 0, pixels = 0;
  Extent count() const { return images * pixels; }
  Extent image_step() const { return blocks * pixels * kBlock; }
  Extent block_step() const { return pixels * kBlock; }
};

Image image_of(const Shape& shape) {
  Image image{shape[0], shape[1], (shape[1] + kBlock - 1) / kBlock, 1};
  for (int d = 2; d < shape.rank; ++d) image.pixels *= shape[d];
  return image;
}

float* data_of(const memory& one) {
  return one ? static_cast<float*>(one.get_data_handle()) : nullptr;
}

// Sums over all pixels of a block: f(at, sums) adds what the pixel at offset `at` gives to `count` vectors.
template <int count, class F>
KIT_INLINE void sum_up(const Image& image, const F& f, double (&total)[count][kBlock]) {
  constexpr Extent piece = 256;
  constexpr int ways = 4;  // chains of sums, since one addition waits for the one before
  for (Extent n = 0; n < image.images; ++n)
    for (Extent first = 0; first < image.pixels; first += piece) {
      Vector sums[ways][count] = {};
      const Extent end = std::min(first + piece, image.pixels), begin = n * image.image_step();
      Extent p = first;
      for (; p + ways <= end; p += ways)
        for (int way = 0; way < ways; ++way) f(begin + (p + way) * kBlock, sums[way]);
      for (; p < end; ++p) f(begin + p * kBlock, sums[0]);
      for (int i = 0; i < count; ++i) {
        const Vector together = (sums[0][i] + sums[1][i]) + (sums[2][i] + sums[3][i]);
        for (int lane = 0; lane < kBlock; ++lane) total[i][lane] += static_cast<double>(together[lane]);
      }
    }
}

template <class F>
KIT_INLINE void for_each_pixel(const Image& image, const F& f) {
  for (Extent n = 0; n < image.images; ++n)
    for (Extent p = 0; p < image.pixels; ++p) f(n * image.image_step() + p * kBlock);
}

// The channels of a block of something by channel; `none` where there is no channel, or nothing is given.
Vector channels_of(const float* data, const Image& image, Extent block, float none) {
  Vector v = Vector{} + none;
  for (int lane = 0; data != nullptr && lane < kBlock; ++lane)
    v[lane] = block * kBlock + lane < image.channels ? data[block * kBlock + lane] : 0.0F;
  return v;
}
int lanes_of(const Image& image, Extent block) {
  return static_cast<int>(std::min<Extent>(kBlock, image.channels - block * kBlock));
}

struct Forward {
  Image image;
  memory source, scale, shift, running_mean, running_variance, result, mean, deviation, summand;
  Activation activation;
  double momentum, epsilon;
  bool given;

  void operator()() const {
#pragma omp parallel for schedule(static)
    for (Extent block = 0; block < image.blocks; ++block) normalise(block);
  }

  void normalise(Extent block) const {
    const Extent offset = block * image.block_step();
    const float* from = data_of(source) + offset;
    given ? keep_given(block) : keep_of_batch(block, from);
    const Vector middle = channels_of(data_of(mean), image, block, 0),
                 factor =
                     channels_of(data_of(scale), image, block, 1) * channels_of(data_of(deviation), image, block, 0),
                 beta = channels_of(data_of(shift), image, block, 0);
    float* to = data_of(result) + offset;
    const float* more = summand ? data_of(summand) + offset : nullptr;
    if (more != nullptr)
      for_each_pixel(image, [&](Extent at) {
        store(to + at, activate((load(from + at) - middle) * factor + beta + load(more + at), activation));
      });
    else
      for_each_pixel(
          image, [&](Extent at) { store(to + at, activate((load(from + at) - middle) * factor + beta, activation)); });
  }

  // Mean and deviation of the batch, and the running statistics after it.
  void keep_of_batch(Extent block, const float* from) const {
    const auto count = static_cast<double>(image.count());
    double sum[1][kBlock] = {}, squares[1][kBlock] = {};
    // differences to one of the values, so that a mean that is large beside the deviation costs no digits
    const Vector about = image.count() > 0 ? load(from) : Vector{};
    sum_up<1>(
        image, [&](Extent at, Vector(&s)[1]) { s[0] += load(from + at) - about; }, sum);
    Vector middle{};
    for (int lane = 0; lane < kBlock; ++lane)
      middle[lane] = static_cast<float>(static_cast<double>(about[lane]) + sum[0][lane] / count);
    sum_up<1>(
        image,
        [&](Extent at, Vector(&s)[1]) {
          const Vector d = load(from + at) - middle;
          s[0] += d * d;
        },
        squares);
    for (int lane = 0; lane < lanes_of(image, block); ++lane) {
      const Extent channel = block * kBlock + lane;
      const double variance = squares[0][lane] / count;
      data_of(mean)[channel] = middle[lane];
      data_of(deviation)[channel] = static_cast<float>(1 / std::sqrt(variance + epsilon));
      run_on(data_of(running_mean), channel, static_cast<double>(middle[lane]));
      run_on(data_of(running_variance), channel, count > 1 ? variance * count / (count - 1) : variance);
    }
  }

  void keep_given(Extent block) const {
    for (Extent channel = block * kBlock; channel < block * kBlock + lanes_of(image, block); ++channel) {
      data_of(mean)[channel] = data_of(running_mean)[channel];
      data_of(deviation)[channel] =
          static_cast<float>(1 / std::sqrt(static_cast<double>(data_of(running_variance)[channel]) + epsilon));
    }
  }

  void run_on(float* running, Extent channel, double now) const {
    if (running == nullptr) return;
    running[channel] = static_cast<float>((1 - momentum) * static_cast<double>(running[channel]) + momentum * now);
  }
};

// A parameter by channel that the step updates.
struct Trained {
  Internals* in = nullptr;
  int weight = -1;
};

struct Backward {
  Image image;
  memory gradient, summand, activated, source, mean, deviation, scale, result, of_scale, of_shift, masked;
  float low, high;
  Trained trained_scale, trained_shift;
  bool given;

  void operator()() const {
    if (activated)
      summand ? run<true, true>() : run<true, false>();
    else
      summand ? run<false, true>() : run<false, false>();
    descend(trained_scale, data_of(of_scale));
    descend(trained_shift, data_of(of_shift));
  }

  void descend(const Trained& trained, const float* gradients) const {
    if (trained.in != nullptr) descend_all(*trained.in, trained.weight, gradients);
  }

  template <bool is_masked, bool is_sum>
  void run() const {
#pragma omp parallel for schedule(static)
    for (Extent block = 0; block < image.blocks; ++block) differentiate<is_masked, is_sum>(block);
  }

  template <bool is_masked, bool is_sum>
  void differentiate(Extent block) const {
    const Extent offset = block * image.block_step();
    const float *first = data_of(gradient) + offset, *second = is_sum ? data_of(summand) + offset : nullptr;
    const float *shown = is_masked ? data_of(activated) + offset : nullptr, *from = data_of(source) + offset;
    float* kept = masked ? data_of(masked) + offset : nullptr;
    const auto gradient_at = [&](Extent at) {
      Vector g = load(first + at);
      if constexpr (is_sum) g += load(second + at);
      if constexpr (is_masked) {
        const Vector y = load(shown + at);
        g = y > low ? g : Vector{};
        g = y < high ? g : Vector{};
      }
      return g;
    };
    const Vector middle = channels_of(data_of(mean), image, block, 0),
                 inverse = channels_of(data_of(deviation), image, block, 0),
                 gamma = channels_of(data_of(scale), image, block, 1);
    double sums[2][kBlock] = {};
    const auto with_source = [&](Extent at, const Vector& g, Vector(&s)[2]) {
      s[0] += g;
      s[1] += g * (load(from + at) - middle);
    };
    if (kept != nullptr)
      sum_up<2>(
          image,
          [&](Extent at, Vector(&s)[2]) {
            const Vector g = gradient_at(at);
            store(kept + at, g);
            with_source(at, g, s);
          },
          sums);
    else
      sum_up<2>(
          image, [&](Extent at, Vector(&s)[2]) { with_source(at, gradient_at(at), s); }, sums);
    const auto count = static_cast<double>(image.count());
    Vector average{}, slope{};
    for (int lane = 0; lane < kBlock; ++lane) {
      const auto r = static_cast<double>(inverse[lane]);
      average[lane] = given ? 0.0F : static_cast<float>(sums[0][lane] / count);
      slope[lane] = given ? 0.0F : static_cast<float>(sums[1][lane] * r * r / count);
      if (lane >= lanes_of(image, block)) continue;
      data_of(of_scale)[block * kBlock + lane] = static_cast<float>(sums[1][lane] * r);
      data_of(of_shift)[block * kBlock + lane] = static_cast<float>(sums[0][lane]);
    }
    const Vector factor = gamma * inverse;
    float* to = data_of(result) + offset;
    if (kept != nullptr)
      for_each_pixel(image, [&](Extent at) {
        store(to + at, (load(kept + at) - average - (load(from + at) - middle) * slope) * factor);
      });
    else
      for_each_pixel(image, [&](Extent at) {
        store(to + at, (gradient_at(at) - average - (load(from + at) - middle) * slope) * factor);
      });
  }
};

// The tensor as an image in blocks: itself, or a copy. What a kernel writes into a copy, `write_back` brings home.
Tensor in_blocks(Program& program, const Tensor& tensor, bool is_read) {
  if (tensor.layout == own_layout || !tensor) return tensor;
  Shape shape{tensor.shape[0], tensor.shape[1], 1, 1};
  for (int d = 2; d < tensor.shape.rank; ++d) shape[2] *= tensor.shape[d];
  if (tensor.layout != Layout::plain) shape = tensor.shape;
  const Tensor copy = program.internals().temporary(shape, own_layout);
  if (is_read) reorder(program, {tensor.as(shape), copy});
  return copy;
}
void write_back(Program& program, const Tensor& copy, const Tensor& tensor) {
  if (tensor && tensor.layout != own_layout) reorder(program, {copy, tensor.as(copy.shape)});
}

}  // namespace

void batch_norm(Program& program, const BatchNorm& how) {
  Internals& in = program.internals();
  Tensor summand;
  Activation activation;
  for (const Post& post : how.then) {
    if (post.kind == Post::Kind::add)
      summand = post.with;
    else if (post.function.kind == Function::Kind::relu)
      activation.kind = Activation::Kind::relu;
    else if (post.function.kind == Function::Kind::clip)
      activation = {Activation::Kind::clamp, post.function.alpha, post.function.beta};
    else
      throw std::logic_error("a post that a batch norm in training lacks");
  }
  const Tensor source = in_blocks(program, how.source, true), result = in_blocks(program, how.result, false);
  const Shape channels{how.source.shape[1]};
  const Tensor mean = how.mean ? how.mean : in.temporary(channels),
               deviation = how.deviation ? how.deviation : in.temporary(channels);
  summand = in_blocks(program, summand, true);
  in.add_own(
      Forward{image_of(source.shape), handle_of(in, source), stored_handle(program, how.scale),
              stored_handle(program, how.shift), stored_handle(program, how.running_mean),
              stored_handle(program, how.running_variance), handle_of(in, result), handle_of(in, mean),
              handle_of(in, deviation), handle_of(in, summand), activation, how.momentum, how.epsilon, how.given},
      false, "kit:batch_norm");
  write_back(program, result, how.result);
}

void batch_norm_backward(Program& program, const BatchNormBackward& how) {
  Internals& in = program.internals();
  const Tensor source = in_blocks(program, how.source, true), gradient = in_blocks(program, how.gradient, true),
               summand = in_blocks(program, how.summand, true), activated = in_blocks(program, how.activated, true),
               result = in_blocks(program, how.result, false), masked = in_blocks(program, how.masked, false);
  Trained scale, shift;
  if (how.trains_scale) scale = {&in, how.scale.number};
  if (how.trains_shift) shift = {&in, how.shift.number};
  in.add_own(Backward{image_of(source.shape), handle_of(in, gradient), handle_of(in, summand), handle_of(in, activated),
                      handle_of(in, source), handle_of(in, how.mean), handle_of(in, how.deviation),
                      stored_handle(program, how.scale), handle_of(in, result), handle_of(in, how.of_scale),
                      handle_of(in, how.of_shift), handle_of(in, masked), how.low, how.high, scale, shift, how.given},
             false, "kit:batch_norm_backward");
  write_back(program, result, how.result);
  write_back(program, masked, how.masked);
}

}  // namespace kit
