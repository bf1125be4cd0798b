// SPDX-License-Identifier: Apache-2.0
// Runs a compiled program slowly and plainly, for tests: on its arena, in its layouts, in place where it says so. What
// a step is about to write is made NaN first, unless it may write over an operand: a wrong sharing shows in the
// results. Each result is computed in double and rounded to float once. Knows the operations that the tests' graphs
// use.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <stdexcept>

#include "compiler/layouts.hpp"
#include "compiler/program.hpp"
#include "compiler/verify.hpp"

namespace strata::compiler {

using Doubles = std::vector<double>;
using graph::Shape;

// A tensor in row-major order.
struct Dense {
  Shape shape;
  Doubles data;
  std::int64_t dim(std::size_t axis) const { return shape.at(axis); }
};

inline std::int64_t count_of(const Shape& shape) {
  return *graph::elements_of(shape);
}

// Index into a tensor of `from`, broadcast to `to`, of the element that is at `flat` in row-major order.
inline std::size_t broadcast_index(const Shape& from, const Shape& to, std::int64_t flat) {
  std::int64_t index = 0, stride = 1;
  for (std::size_t back = 0; back < to.size(); ++back) {
    const auto extent = to[to.size() - 1 - back], at = flat % extent;
    flat /= extent;
    if (back >= from.size()) continue;
    const auto own = from[from.size() - 1 - back];
    if (own != 1) index += at * stride;
    stride *= own;
  }
  return static_cast<std::size_t>(index);
}

inline double activated(const std::string& name, double x, double alpha, double beta) {
  const double gate = std::min(std::max(x / 6 + 0.5, 0.0), 1.0);
  if (name == "relu") return x > 0 ? x : x * 0;  // NaN stays
  if (name == "leaky_relu") return x > 0 ? x : alpha * x;
  if (name == "clamp") return std::isnan(x) ? x : std::min(std::max(x, alpha), beta);
  if (name == "hardswish") return x * gate;
  if (name == "hardsigmoid") return std::isnan(x) ? x : gate;
  if (name == "sigmoid") return 1 / (1 + std::exp(-x));
  if (name == "tanh") return std::tanh(x);
  if (name == "silu") return x / (1 + std::exp(-x));
  if (name == "gelu") return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
  throw std::runtime_error("the interpreter lacks the activation " + name);
}

class Interpreter {
 public:
  explicit Interpreter(const Program& program) : p_(program), arena_(slots(program.arena_bytes), nan()) {
    for (std::size_t v = 0; v < p_.places.size(); ++v) {
      const auto& place = p_.places[v];
      if (place.storage == static_cast<int>(v) && place.in != Place::In::arena)
        own_[place.storage].assign(slots(place.bytes), nan());
    }
  }

  // Inputs and weights by the seed and their names: small numbers, variances positive.
  void fill(unsigned seed) {
    const auto& g = p_.graph;
    for (const auto* list : {&g.inputs, &g.parameters, &g.buffers, &g.constants})
      for (const auto& one : *list) {
        std::seed_seq from(one.name.begin(), one.name.end());
        std::vector<unsigned> start(1);
        from.generate(start.begin(), start.end());
        std::mt19937 draw(start.front() ^ seed);
        const bool positive = one.name.ends_with("var");
        Dense dense = shaped(one.value);
        for (auto& x : dense.data) {
          const double unit = static_cast<double>(draw() % 20001) / 10000 - 1;
          x = positive ? 1 + 0.5 * unit : unit;
        }
        write(one.value, dense);
      }
  }

  void run(When when) {
    for (const auto& step : p_.steps)
      if (step.when == when && !step.view) execute(step);
  }

  std::map<std::string, Doubles> outputs() const {
    std::map<std::string, Doubles> all;
    for (const auto& one : p_.graph.outputs) all[one.name] = read(one.value).data;
    return all;
  }

 private:
  static float nan() { return std::numeric_limits<float>::quiet_NaN(); }
  // A float of the interpreter's for every two bytes of the program's: bfloat16 has one, float32 two, the second idle.
  static constexpr std::int64_t slot = 2;
  static std::size_t slots(std::int64_t bytes) { return static_cast<std::size_t>(bytes / slot); }

  const float* data(int value) const { return const_cast<Interpreter*>(this)->data(value); }
  float* data(int value) {
    const auto& place = p_.place(p_.place(value).storage);
    return place.in == Place::In::arena ? arena_.data() + place.offset / slot : own_.at(p_.place(value).storage).data();
  }

  Dense shaped(int value) const {
    const auto& shape = p_.value(value).shape;
    return {shape, Doubles(static_cast<std::size_t>(count_of(shape)), 0)};
  }

  // Where element `flat` (row-major) of a value lies.
  std::size_t position(int value, std::int64_t flat) const {
    return element(value, flat) * slots(graph::bytes_of(p_.value(value).type));
  }
  std::size_t element(int value, std::int64_t flat) const {
    const auto layout = p_.place(value).layout;
    if (layout == Layout::plain) return static_cast<std::size_t>(flat);
    const auto& s = p_.value(value).shape;
    const auto w = flat % s[3], h = flat / s[3] % s[2], c = flat / s[3] / s[2] % s[1], n = flat / s[3] / s[2] / s[1];
    if (layout == Layout::channels_last) return static_cast<std::size_t>(((n * s[2] + h) * s[3] + w) * s[1] + c);
    const auto b = p_.block, blocks = (s[1] + b - 1) / b;
    return static_cast<std::size_t>((((n * blocks + c / b) * s[2] + h) * s[3] + w) * b + c % b);
  }

  Dense read(int value) const {
    Dense dense = shaped(value);
    const float* from = data(value);
    for (std::size_t i = 0; i < dense.data.size(); ++i)
      dense.data[i] = from[position(value, static_cast<std::int64_t>(i))];
    return dense;
  }
  Dense read(const Step& step, std::string_view arg) const { return read(step.node.tensor(arg)); }

  void write(int value, const Dense& dense) {
    float* to = data(value);
    std::fill(to, to + p_.place(value).bytes / slot, 0.0F);
    for (std::size_t i = 0; i < dense.data.size(); ++i)
      to[position(value, static_cast<std::int64_t>(i))] = static_cast<float>(dense.data[i]);
  }

  void execute(const Step& step) {
    const auto operands = operands_of(step);
    for (const int output : step.node.outputs) {
      const bool over = std::any_of(operands.begin(), operands.end(),
                                    [&](int v) { return p_.same_storage(v, output) && may_write_over(p_, step, v); });
      if (!over) std::fill(data(output), data(output) + p_.place(output).bytes / slot, nan());
    }
    auto results = compute(step);
    for (const auto& post : step.posts) apply(post, results.front());
    for (std::size_t i = 0; i < results.size(); ++i) write(step.node.outputs[i], results[i]);
  }

  void apply(const PostOp& post, Dense& on) const {
    const Dense other = post.value >= 0 ? read(post.value) : Dense{};
    for (std::size_t i = 0; i < on.data.size(); ++i) {
      auto& x = on.data[i];
      if (post.kind == PostOp::Kind::activation) {
        x = activated(post.operation, x, post.alpha, post.beta);
        continue;
      }
      const double y = other.data[broadcast_index(other.shape, on.shape, static_cast<std::int64_t>(i))];
      x = post.kind == PostOp::Kind::add ? x + y : x * y;
    }
  }

  std::vector<Dense> compute(const Step& step) const {
    const auto& node = step.node;
    const auto name = node.operation();
    if (name == "conv2d") return {convolution(step)};
    if (name == "linear") return {linear(step)};
    if (name == "batch_norm") return {batch_norm(step)};
    if (name == "add" || name == "mul") return {binary(step)};
    if (name == "cat") return {joined(step)};
    if (name == "chunk") return parts(step);
    if (name == "permute") return {permuted(step)};
    if (name == "max_pool2d" || name == "avg_pool2d") return {pooled(step)};
    if (name == "adaptive_avg_pool2d" || name == "mean") return {averaged(step)};
    if (name == "strata.copy" || name == "strata.reorder" || name == "strata.cast") return {read(step, "self")};
    if (name == "strata.scale_weight" || name == "strata.shift_bias") return {folded(step)};
    if (name == "strata.scale_shift") return {scaled(step)};
    if (name == "hardtanh" || name == "relu6")
      return {unary(step, "clamp", name == "relu6" ? 0 : node.number("min_val"),
                    name == "relu6" ? 6 : node.number("max_val"))};
    return {unary(step, name, 0, 0)};
  }

  Dense unary(const Step& step, const std::string& name, double alpha, double beta) const {
    Dense x = read(operands_of(step).front());
    for (auto& one : x.data) one = activated(name, one, alpha, beta);
    return x;
  }

  Dense convolution(const Step& step) const {
    const auto& node = step.node;
    const Dense x = read(step, "input"), w = read(step, "weight");
    const auto bias = node.maybe_tensor("bias");
    const Dense b = bias ? read(*bias) : Dense{};
    const auto stride = node.ints("stride"), pad = node.ints("padding"), dilation = node.ints("dilation");
    const auto per_group = w.dim(1), out_per_group = w.dim(0) / node.integer("groups");
    Dense y = shaped(node.outputs.front());
    std::size_t at = 0;
    for (std::int64_t n = 0; n < y.dim(0); ++n)
      for (std::int64_t k = 0; k < y.dim(1); ++k)
        for (std::int64_t i = 0; i < y.dim(2); ++i)
          for (std::int64_t j = 0; j < y.dim(3); ++j) {
            double sum = bias ? b.data[static_cast<std::size_t>(k)] : 0;
            for (std::int64_t c = 0; c < per_group; ++c)
              for (std::int64_t r = 0; r < w.dim(2); ++r)
                for (std::int64_t s = 0; s < w.dim(3); ++s) {
                  const auto h = i * stride[0] - pad[0] + r * dilation[0], v = j * stride[1] - pad[1] + s * dilation[1];
                  if (h < 0 || h >= x.dim(2) || v < 0 || v >= x.dim(3)) continue;
                  const auto channel = k / out_per_group * per_group + c;
                  sum += x.data[static_cast<std::size_t>(((n * x.dim(1) + channel) * x.dim(2) + h) * x.dim(3) + v)] *
                         w.data[static_cast<std::size_t>(((k * per_group + c) * w.dim(2) + r) * w.dim(3) + s)];
                }
            y.data[at++] = sum;
          }
    return y;
  }

  Dense linear(const Step& step) const {
    const Dense x = read(step, "input"), w = read(step, "weight");
    const auto bias = step.node.maybe_tensor("bias");
    const Dense b = bias ? read(*bias) : Dense{};
    Dense y = shaped(step.node.outputs.front());
    const auto in = static_cast<std::size_t>(w.dim(1)), out = static_cast<std::size_t>(w.dim(0));
    for (std::size_t i = 0; i < y.data.size(); ++i) {
      double sum = bias ? b.data[i % out] : 0;
      for (std::size_t c = 0; c < in; ++c) sum += x.data[i / out * in + c] * w.data[i % out * in + c];
      y.data[i] = sum;
    }
    return y;
  }

  static std::size_t channel(const Shape& shape, std::size_t flat) {
    const Shape inner(shape.begin() + 2, shape.end());
    return flat / static_cast<std::size_t>(count_of(inner)) % static_cast<std::size_t>(shape[1]);
  }

  Dense batch_norm(const Step& step) const {
    Dense x = read(step, "input");
    const Dense g = read(step, "weight"), b = read(step, "bias"), m = read(step, "running_mean"),
                v = read(step, "running_var");
    for (std::size_t i = 0; i < x.data.size(); ++i) {
      const auto c = channel(x.shape, i);
      x.data[i] = (x.data[i] - m.data[c]) * g.data[c] / std::sqrt(v.data[c] + step.node.number("eps")) + b.data[c];
    }
    return x;
  }

  Dense scaled(const Step& step) const {
    Dense x = read(step, "self");
    const Dense scale = read(step, "scale"), shift = read(step, "shift");
    for (std::size_t i = 0; i < x.data.size(); ++i)
      x.data[i] = x.data[i] * scale.data[channel(x.shape, i)] + shift.data[channel(x.shape, i)];
    return x;
  }

  // Both steps that a folded batch norm leaves at load; the formulas are fold_batch_norm's.
  Dense folded(const Step& step) const {
    const auto& node = step.node;
    const auto get = [&](const char* arg) {
      return node.find(arg) == nullptr || node.is_null(arg) ? Dense{} : read(node.tensor(arg));
    };
    const Dense w = get("weight"), bias = get("bias"), gamma = get("gamma"), var = get("var"), mean = get("mean"),
                beta = get("beta");
    Dense y = shaped(node.outputs.front());
    const auto per = y.data.size() / static_cast<std::size_t>(y.dim(0));
    for (std::size_t i = 0; i < y.data.size(); ++i) {
      const auto k = i / per;
      const double s = (gamma.data.empty() ? 1 : gamma.data[k]) / std::sqrt(var.data[k] + node.number("eps"));
      if (node.operation() == "strata.scale_weight")
        y.data[i] = (w.data.empty() ? 1 : w.data[i]) * s;
      else
        y.data[i] =
            ((bias.data.empty() ? 0 : bias.data[k]) - mean.data[k]) * s + (beta.data.empty() ? 0 : beta.data[k]);
    }
    return y;
  }

  Dense binary(const Step& step) const {
    const Dense a = read(step, "self"),
                b = step.node.is_tensor("other") ? read(step, "other") : Dense{{}, {step.node.number("other")}};
    Dense y = shaped(step.node.outputs.front());
    for (std::size_t i = 0; i < y.data.size(); ++i) {
      const double l = a.data[broadcast_index(a.shape, y.shape, static_cast<std::int64_t>(i))],
                   r = b.data[broadcast_index(b.shape, y.shape, static_cast<std::int64_t>(i))];
      y.data[i] = step.node.operation() == "add" ? l + r : l * r;
    }
    return y;
  }

  // Along dimension 1.
  Dense joined(const Step& step) const {
    Dense y = shaped(step.node.outputs.front());
    const Shape inner(y.shape.begin() + 2, y.shape.end());
    const auto size = static_cast<std::size_t>(count_of(inner));
    std::size_t to = 0;
    for (std::int64_t n = 0; n < y.dim(0); ++n)
      for (const int value : step.node.tensors("tensors")) {
        const Dense x = read(value);
        const auto part = static_cast<std::size_t>(x.dim(1)) * size;
        for (std::size_t i = 0; i < part; ++i) y.data[to++] = x.data[static_cast<std::size_t>(n) * part + i];
      }
    return y;
  }

  std::vector<Dense> parts(const Step& step) const {
    const Dense x = read(step, "self");
    std::vector<Dense> found;
    std::int64_t begin = 0;
    for (const int output : step.node.outputs) {
      Dense y = shaped(output);
      const auto pixels = y.dim(2) * y.dim(3);
      for (std::size_t i = 0; i < y.data.size(); ++i) {
        const auto flat = static_cast<std::int64_t>(i), n = flat / (y.dim(1) * pixels),
                   rest = flat % (y.dim(1) * pixels);
        y.data[i] = x.data[static_cast<std::size_t>((n * x.dim(1) + begin) * pixels + rest)];
      }
      begin += y.dim(1);
      found.push_back(std::move(y));
    }
    return found;
  }

  Dense permuted(const Step& step) const {
    const Dense x = read(step, "self");
    Dense y = shaped(step.node.outputs.front());
    const auto dims = step.node.ints("dims");
    for (std::size_t i = 0; i < y.data.size(); ++i) {
      std::vector<std::int64_t> at(x.shape.size());
      auto flat = static_cast<std::int64_t>(i);
      for (std::size_t axis = y.shape.size(); axis-- > 0; flat /= y.shape[axis])
        at[static_cast<std::size_t>(dims[axis])] = flat % y.shape[axis];
      std::int64_t from = 0;
      for (std::size_t axis = 0; axis < at.size(); ++axis) from = from * x.shape[axis] + at[axis];
      y.data[i] = x.data[static_cast<std::size_t>(from)];
    }
    return y;
  }

  // Averages count the padding, as PyTorch's default.
  Dense pooled(const Step& step) const {
    const auto& node = step.node;
    const Dense x = read(step, "self");
    const auto kernel = node.ints("kernel_size"), stride = node.ints("stride"), pad = node.ints("padding");
    const bool largest = node.operation() == "max_pool2d";
    Dense y = shaped(node.outputs.front());
    for (std::size_t o = 0; o < y.data.size(); ++o) {
      const auto flat = static_cast<std::int64_t>(o), j = flat % y.dim(3), i = flat / y.dim(3) % y.dim(2),
                 image = flat / y.dim(3) / y.dim(2);
      double result = largest ? -std::numeric_limits<double>::infinity() : 0;
      for (std::int64_t r = 0; r < kernel[0]; ++r)
        for (std::int64_t s = 0; s < kernel[1]; ++s) {
          const auto h = i * stride[0] - pad[0] + r, w = j * stride[1] - pad[1] + s;
          if (h < 0 || h >= x.dim(2) || w < 0 || w >= x.dim(3)) continue;
          const double one = x.data[static_cast<std::size_t>((image * x.dim(2) + h) * x.dim(3) + w)];
          result = largest ? (one > result || std::isnan(one) ? one : result)
                           : result + one / static_cast<double>(kernel[0] * kernel[1]);
        }
      y.data[o] = result;
    }
    return y;
  }

  // Over whole images.
  Dense averaged(const Step& step) const {
    const Dense x = read(step, "self");
    Dense y = shaped(step.node.outputs.front());
    if (y.data.empty()) return y;
    const auto pixels = x.data.size() / y.data.size();
    for (std::size_t i = 0; i < x.data.size(); ++i) y.data[i / pixels] += x.data[i] / static_cast<double>(pixels);
    return y;
  }

  const Program& p_;
  std::vector<float> arena_;
  std::map<int, std::vector<float>> own_;  // by storage
};

// Loads weights drawn from the seed and runs once.
inline std::map<std::string, Doubles> results_of(const Program& program, unsigned seed) {
  Interpreter interpreter(program);
  interpreter.fill(seed);
  interpreter.run(When::load);
  interpreter.run(When::run);
  return interpreter.outputs();
}

}  // namespace strata::compiler
