// SPDX-License-Identifier: Apache-2.0
// The libraries' work as loops in host memory, for tests on machines without a device: sums in float64, in any strides.
// There are plans for most of what the libraries have plans for; some are refused, so that tests see what is done then.
#include <variant>
#include <vector>

#include "kit_cuda/kernels/bfloat16.hpp"
#include "kit_cuda/kernels/host.hpp"
#include "kit_cuda/libraries.hpp"

namespace kit_cuda {
namespace {

float finished(const Epilogue& then, double sum, const float* bias, Index channel, const float* summand, Index at) {
  if (then.bias) sum += static_cast<double>(bias[channel]);
  if (then.summand) sum += static_cast<double>(summand[at]);
  const auto value = static_cast<float>(sum);
  return value < then.low ? then.low : value > then.high ? then.high : value;
}

// Images as N C D H W; what is missing has one element.
View volume(const View& from) {
  View view{5, {1, 1, 1, 1, 1}, {}};
  for (int d = 0; d < from.rank; ++d) {
    const int to = d < 2 ? d : d + 5 - from.rank;
    view.extents[to] = from.extents[d];
    view.strides[to] = from.strides[d];
  }
  return view;
}

struct Volume {
  View image, filter, result;
  Index stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, before[3] = {};
};
Volume volume(const Convolution& how) {
  Volume volume_of_call{volume(how.image), volume(how.filter), volume(how.result)};
  const int missing = 5 - how.image.rank;
  for (int d = missing; d < 3; ++d) {
    volume_of_call.stride[d] = how.window.stride[d - missing];
    volume_of_call.dilation[d] = how.window.dilation[d - missing];
    volume_of_call.before[d] = how.window.before[d - missing];
  }
  return volume_of_call;
}

// Calls each(result offset, image offset, filter offset) for the taps of one result's place, of one group's channels.
template <class Each>
void each_tap(const Volume& v, Index n, Index k, Index first_channel, const Index* out, const Each& each) {
  const View &x = v.image, &w = v.filter;
  Index tap[3], in[3];
  for (tap[0] = 0; tap[0] < w.extents[2]; ++tap[0])
    for (tap[1] = 0; tap[1] < w.extents[3]; ++tap[1])
      for (tap[2] = 0; tap[2] < w.extents[4]; ++tap[2]) {
        bool inside = true;
        for (int d = 0; d < 3; ++d) {
          in[d] = out[d] * v.stride[d] - v.before[d] + tap[d] * v.dilation[d];
          inside = inside && in[d] >= 0 && in[d] < x.extents[d + 2];
        }
        if (!inside) continue;
        const Index from = n * x.strides[0] + first_channel * x.strides[1] + in[0] * x.strides[2] +
                           in[1] * x.strides[3] + in[2] * x.strides[4],
                    by = k * w.strides[0] + tap[0] * w.strides[2] + tap[1] * w.strides[3] + tap[2] * w.strides[4];
        for (Index c = 0; c < w.extents[1]; ++c) each(from + c * x.strides[1], by + c * w.strides[1]);
      }
}

template <class Each>
void each_result(const Volume& v, Index groups, const Each& each) {
  const View& y = v.result;
  const Index per_group = y.extents[1] / groups;
  Index out[3];
  for (Index n = 0; n < y.extents[0]; ++n)
    for (Index k = 0; k < y.extents[1]; ++k)
      for (out[0] = 0; out[0] < y.extents[2]; ++out[0])
        for (out[1] = 0; out[1] < y.extents[3]; ++out[1])
          for (out[2] = 0; out[2] < y.extents[4]; ++out[2])
            each(n, k, k / per_group * v.filter.extents[1], out,
                 n * y.strides[0] + k * y.strides[1] + out[0] * y.strides[2] + out[1] * y.strides[3] +
                     out[2] * y.strides[4]);
}

Index reach(const View& view) {
  Index last = 1;
  for (int d = 0; d < view.rank; ++d) last += (view.extents[d] - 1) * view.strides[d];
  return last;
}

// Of a convolution or a product, as what is calculated with.
struct Floats {
  float *first, *second, *result;
  const float *bias, *summand;
};

void convolve(const Convolution& how, const Floats& on) {
  const Volume v = volume(how);
  if (how.direction == Direction::forward)
    return each_result(v, how.groups, [&](Index n, Index k, Index first, const Index* out, Index at) {
      double sum = 0;
      each_tap(v, n, k, first, out, [&](Index from, Index by) {
        sum += static_cast<double>(on.first[from]) * static_cast<double>(on.second[by]);
      });
      on.result[at] = finished(how.then, sum, on.bias, k, on.summand, at);
    });
  const bool of_image = how.direction == Direction::data;
  std::vector<double> sums(static_cast<std::size_t>(reach(of_image ? v.image : v.filter)));
  each_result(v, how.groups, [&](Index n, Index k, Index first, const Index* out, Index at) {
    const double gradient = static_cast<double>(on.result[at]);
    each_tap(v, n, k, first, out, [&](Index from, Index by) {
      if (of_image)
        sums[static_cast<std::size_t>(from)] += gradient * static_cast<double>(on.second[by]);
      else
        sums[static_cast<std::size_t>(by)] += gradient * static_cast<double>(on.first[from]);
    });
  });
  // images and filters are dense, so that every place is one of an element
  float* to = of_image ? on.first : on.second;
  for (std::size_t i = 0; i < sums.size(); ++i) to[i] = static_cast<float>(sums[i]);
}

void multiply(const Product& how, const Floats& on) {
  const auto outer = [](View view) {
    view.rank -= 2;
    return view;
  };
  const auto step = [](const View& view, int from_behind) { return view.strides[view.rank - from_behind]; };
  const auto batch = walk<3>({outer(how.left), outer(how.right), outer(how.result)});
  const Index rows = how.result.extents[how.result.rank - 2], columns = how.result.extents[how.result.rank - 1],
              length = how.left.extents[how.left.rank - 1];
  for (Index b = 0; b < batch.count; ++b) {
    Index at[3];
    batch.find(b, at);
    for (Index r = 0; r < rows; ++r)
      for (Index c = 0; c < columns; ++c) {
        double sum = 0;
        for (Index i = 0; i < length; ++i)
          sum += static_cast<double>(on.first[at[0] + r * step(how.left, 2) + i * step(how.left, 1)]) *
                 static_cast<double>(on.second[at[1] + i * step(how.right, 2) + c * step(how.right, 1)]);
        on.result[at[2] + r * step(how.result, 2) + c * step(how.result, 1)] =
            finished(how.then, sum, on.bias, c, nullptr, 0);
      }
  }
}

// An operand as float32, for as long as it is worked on.
class Operand {
 public:
  Operand(const void* data, Index elements, bool bfloat16) : data_(const_cast<void*>(data)) {
    if (data_ == nullptr || !bfloat16) return;
    for (Index i = 0; i < elements; ++i) wide_.push_back(widened(static_cast<const Bfloat16*>(data_)[i]));
  }
  float* floats() { return wide_.empty() ? static_cast<float*>(data_) : wide_.data(); }
  void write_back() const {
    for (std::size_t i = 0; i < wide_.size(); ++i) round_to(static_cast<Bfloat16*>(data_)[i], wide_[i]);
  }

 private:
  void* data_;
  std::vector<float> wide_;
};

void run_plan(const Convolution& how, const ConvolutionOperands& on) {
  const Index results = reach(how.result);
  Operand image(on.image, reach(how.image), how.bfloat16), filter(on.filter, reach(how.filter), how.bfloat16),
      result(on.result, results, how.bfloat16), bias(on.bias, how.result.extents[1], how.bfloat16),
      summand(on.summand, results, how.bfloat16);
  convolve(how, {image.floats(), filter.floats(), result.floats(), bias.floats(), summand.floats()});
  (how.direction == Direction::forward ? result : how.direction == Direction::data ? image : filter).write_back();
}

void run_plan(const Product& how, const ProductOperands& on) {
  Operand left(on.left, reach(how.left), how.bfloat16), right(on.right, reach(how.right), how.bfloat16),
      result(on.result, reach(how.result), how.bfloat16 && !how.gives_float32),
      bias(on.bias, how.result.extents[how.result.rank - 1], how.bfloat16 && !how.gives_float32);
  multiply(how, {left.floats(), right.floats(), result.floats(), bias.floats(), nullptr});
  result.write_back();
}

}  // namespace

struct Libraries::Plans {
  std::vector<std::variant<Convolution, Product>> all;
};

Libraries::Libraries(Stream) : plans_(std::make_unique<Plans>()) {}
Libraries::~Libraries() = default;
void Libraries::allow_tf32() {}
const std::string& Libraries::refusal() const {
  static const std::string none;
  return none;
}

std::optional<int> Libraries::plan(const Convolution& how) {
  const bool is_plain = how.result.strides[how.result.rank - 1] == 1, has_upper_bound = how.then.high < 1e30F;
  if ((how.groups > 1 && how.groups < how.image.extents[1] && !is_plain) || has_upper_bound) return std::nullopt;
  plans_->all.emplace_back(how);
  return static_cast<int>(plans_->all.size()) - 1;
}
std::optional<int> Libraries::plan(const Product& how) {
  if (how.then.summand || (how.then.clamps() && how.then.low != 0)) return std::nullopt;
  plans_->all.emplace_back(how);
  return static_cast<int>(plans_->all.size()) - 1;
}

void Libraries::run(int plan, const ConvolutionOperands& on) {
  perform([how = std::get<Convolution>(plans_->all.at(static_cast<std::size_t>(plan))), on] { run_plan(how, on); });
}
void Libraries::run(int plan, const ProductOperands& on) {
  perform([how = std::get<Product>(plans_->all.at(static_cast<std::size_t>(plan))), on] { run_plan(how, on); });
}
void Libraries::allocate_workspace() {}
std::size_t Libraries::workspace_bytes() const {
  return 0;
}

std::string libraries_name() {
  return "loops in host memory";
}

}  // namespace kit_cuda
