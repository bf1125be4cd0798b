// SPDX-License-Identifier: Apache-2.0
// Builds small graphs for the compiler's tests, as capture would write them: by hand, or drawn from a seed.
#pragma once

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "graph/check.hpp"
#include "graph/load.hpp"

namespace strata::compiler {

using nlohmann::json;

class GraphBuilder {
 public:
  explicit GraphBuilder(bool trains = false) : trains_(trains) { all_["mode"] = trains ? "train" : "infer"; }
  int input(const std::string& name, std::vector<int> shape) { return named("inputs", name, std::move(shape)); }
  int parameter(const std::string& name, std::vector<int> shape) { return named("parameters", name, std::move(shape)); }
  int buffer(const std::string& name, std::vector<int> shape) { return named("buffers", name, std::move(shape)); }
  void output(const std::string& name, int value) { all_["outputs"].push_back({{"name", name}, {"value", value}}); }

  // A node with results of these shapes; the first result's index.
  int node(const std::string& op, json args, std::vector<std::vector<int>> shapes) {
    const auto name = op.substr(5, op.find('.', 5) - 5) + "_" + std::to_string(all_["nodes"].size());
    json outputs = json::array();
    for (auto& shape : shapes) outputs.push_back(value(name, std::move(shape)));
    all_["nodes"].push_back({{"op", op},
                             {"name", name},
                             {"args", std::move(args)},
                             {"outputs", outputs},
                             {"module", "layer" + std::to_string(all_["nodes"].size() / 4)},
                             {"module_type", "Layer"},
                             {"source", "net.py:1"}});
    return outputs.front().get<int>();
  }

  int conv(int x, int channels, int kernel = 1, int stride = 1, int groups = 1, bool bias = false) {
    const auto in = shape(x);
    const auto id = std::to_string(all_["nodes"].size());
    const int weight = parameter("conv" + id + ".weight", {channels, in[1] / groups, kernel, kernel});
    return conv_with(x, weight, bias ? parameter("conv" + id + ".bias", {channels}) : -1, stride, groups);
  }
  int conv_with(int x, int weight, int bias, int stride, int groups) {
    const auto in = shape(x), w = shape(weight);
    const int pad = w[2] / 2;
    const auto extent = [&](int size) { return (size + 2 * pad - w[2]) / stride + 1; };
    return node("aten.conv2d.default",
                {{"input", ref(x)},
                 {"weight", ref(weight)},
                 {"bias", bias < 0 ? json(nullptr) : ref(bias)},
                 {"stride", {stride, stride}},
                 {"padding", {pad, pad}},
                 {"dilation", {1, 1}},
                 {"groups", groups}},
                {{in[0], w[0], extent(in[2]), extent(in[3])}});
  }
  int norm(int x) {
    const auto id = "bn" + std::to_string(all_["nodes"].size());
    const int channels = shape(x)[1];
    const int gamma = parameter(id + ".weight", {channels}), beta = parameter(id + ".bias", {channels});
    const int mean = buffer(id + ".running_mean", {channels}), var = buffer(id + ".running_var", {channels});
    std::vector<std::vector<int>> results{shape(x)};
    if (trains_) results.insert(results.end(), 2, {channels});
    const int y = node("aten.batch_norm.default",
                       {{"input", ref(x)},
                        {"weight", ref(gamma)},
                        {"bias", ref(beta)},
                        {"running_mean", ref(mean)},
                        {"running_var", ref(var)},
                        {"training", trains_},
                        {"momentum", 0.1},
                        {"eps", 1e-5},
                        {"cudnn_enabled", true}},
                       results);
    for (const auto& [name, value] : {std::pair(".running_mean", y + 1), std::pair(".running_var", y + 2)})
      if (trains_) all_["updates"].push_back({{"buffer", id + name}, {"value", value}});
    return y;
  }
  int act(int x, const std::string& name = "relu") {
    json args = {{"self", ref(x)}};
    if (name == "hardtanh") args.update({{"min_val", -0.5}, {"max_val", 0.7}});
    if (name == "gelu") args["approximate"] = "none";
    if (name == "dropout") args = {{"input", ref(x)}, {"p", 0.5}, {"train", trains_}};
    return node("aten." + name + ".default", args, {shape(x)});
  }
  int add(int a, int b) {
    return node("aten.add.Tensor", {{"self", ref(a)}, {"other", ref(b)}, {"alpha", 1}}, {larger(a, b)});
  }
  int mul(int a, int b) { return node("aten.mul.Tensor", {{"self", ref(a)}, {"other", ref(b)}}, {larger(a, b)}); }
  int cat(std::vector<int> parts) {
    auto whole = shape(parts.front());
    whole[1] = 0;
    for (const int part : parts) whole[1] += shape(part)[1];
    return node("aten.cat.default", {{"tensors", {{"values", parts}}}, {"dim", 1}}, {whole});
  }
  int pool(int x, bool largest) {
    auto to = shape(x);
    json args = {
        {"self", ref(x)}, {"kernel_size", {2, 2}}, {"stride", {2, 2}}, {"padding", {1, 1}}, {"ceil_mode", false}};
    if (largest)
      args["dilation"] = {1, 1};
    else
      args.update({{"count_include_pad", true}, {"divisor_override", nullptr}});
    to[2] = to[2] / 2 + 1;
    to[3] = to[3] / 2 + 1;
    return node(largest ? "aten.max_pool2d.default" : "aten.avg_pool2d.default", args, {to});
  }
  int average(int x) {
    return node("aten.adaptive_avg_pool2d.default", {{"self", ref(x)}, {"output_size", {1, 1}}},
                {{shape(x)[0], shape(x)[1], 1, 1}});
  }
  int mean(int x) {
    return node("aten.mean.dim", {{"self", ref(x)}, {"dim", {2, 3}}, {"keepdim", false}, {"dtype", nullptr}},
                {{shape(x)[0], shape(x)[1]}});
  }
  int flatten(int x) {
    const auto s = shape(x);
    return node("aten.flatten.using_ints", {{"self", ref(x)}, {"start_dim", 1}, {"end_dim", -1}},
                {{s[0], s[1] * s[2] * s[3]}});
  }
  int permute(int x, std::vector<int> dims) {
    std::vector<int> to;
    for (const int dim : dims) to.push_back(shape(x)[static_cast<std::size_t>(dim)]);
    return node("aten.permute.default", {{"self", ref(x)}, {"dims", dims}}, {to});
  }
  // Into two halves by channels; the first's index, the second follows.
  int halves(int x) {
    auto half = shape(x);
    half[1] /= 2;
    return node("aten.chunk.default", {{"self", ref(x)}, {"chunks", 2}, {"dim", 1}}, {half, half});
  }
  int linear(int x, int features) {
    const auto id = "fc" + std::to_string(all_["nodes"].size());
    auto to = shape(x);
    const int weight = parameter(id + ".weight", {features, to.back()}), bias = parameter(id + ".bias", {features});
    to.back() = features;
    return node("aten.linear.default", {{"input", ref(x)}, {"weight", ref(weight)}, {"bias", ref(bias)}}, {to});
  }

  std::vector<int> shape(int index) const {
    return all_["values"][static_cast<std::size_t>(index)]["shape"].get<std::vector<int>>();
  }
  const json& document() const { return all_; }
  static json ref(int index) { return {{"value", index}}; }

 private:
  std::vector<int> larger(int a, int b) const {
    auto x = shape(a), y = shape(b);
    if (x.size() < y.size()) std::swap(x, y);
    for (std::size_t back = 0; back < y.size(); ++back)
      x[x.size() - 1 - back] = std::max(x[x.size() - 1 - back], y[y.size() - 1 - back]);
    return x;
  }
  int value(const std::string& name, std::vector<int> shape) {
    all_["values"].push_back({{"name", name}, {"dtype", "float32"}, {"shape", std::move(shape)}});
    return static_cast<int>(all_["values"].size()) - 1;
  }
  int named(const char* list, const std::string& name, std::vector<int> shape) {
    const int index = value(name, std::move(shape));
    all_[list].push_back({{"name", name}, {"value", index}});
    return index;
  }

  bool trains_;
  json all_ = json::parse(
      R"({"graph":1,"mode":"infer","values":[],"inputs":[],"parameters":[],"buffers":[],"constants":[],"nodes":[],"outputs":[],"updates":[]})");
};

// The graph, checked against the table of operations.
inline Result<graph::Graph> graph_of(const json& document) {
  auto parsed = graph::parse(document.dump(), "the test's graph");
  if (!parsed) return parsed;
  if (const auto checked = graph::check(*parsed); !checked) return tl::unexpected(checked.error());
  return parsed;
}

// How many random networks a test takes that tries `count` of them: the sanitizers take ten times as long for each.
constexpr unsigned random_networks(unsigned count) {
#ifdef STRATA_SANITIZED
  return count / 10;
#else
  return count;
#endif
}

// A network as people build them, and odd: channels that fill no block, groups, values with several readers, outputs in
// the middle. Every convolution is small, so that many graphs can be run.
class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed, bool trains = false) : b_(trains), draw_(seed) {}

  // One whose first output are scores, for a training step.
  json make_scores() {
    grow();
    b_.output("scores", b_.linear(b_.mean(live_.back()), one_of({2, 5, 10})));
    return b_.document();
  }

  json make() {
    grow();
    const int outputs = one_of({0, 0, 1, 2});
    for (int i = 0; i < outputs; ++i) b_.output("out" + std::to_string(i), any());
    b_.output("last", tail(live_.back()));
    return b_.document();
  }

 private:
  void grow() {
    live_.push_back(
        b_.input("x", {one_of({1, 2}), one_of({1, 3, 4, 5, 8, 16, 17}), one_of({1, 3, 4, 5}), one_of({1, 3, 4})}));
    const int moves = one_of({2, 4, 7, 10});
    for (int i = 0; i < moves; ++i) move();
  }

  int one_of(std::initializer_list<int> of) { return *(of.begin() + draw_() % of.size()); }
  bool maybe(unsigned percent) { return draw_() % 100 < percent; }
  // Recent values more often, so that graphs get deep.
  int any() { return live_[live_.size() - 1 - std::min<std::size_t>(draw_() % live_.size(), draw_() % live_.size())]; }
  std::string activation() {
    static const std::vector<std::string> names{"relu",    "relu", "hardtanh", "hardswish", "hardsigmoid",
                                                "sigmoid", "silu", "gelu",     "relu6",     "dropout"};
    return names[draw_() % names.size()];
  }
  int groups(int in, int out) {
    if (in == out && maybe(30)) return in;
    return in % 2 == 0 && out % 2 == 0 && maybe(25) ? 2 : 1;
  }

  int block(int x, int channels, int stride) {
    x = b_.conv(x, channels, one_of({1, 3}), stride, groups(b_.shape(x)[1], channels), maybe(40));
    if (maybe(60)) x = b_.norm(x);
    if (maybe(50)) x = b_.act(x, activation());
    return x;
  }

  void residual(int x) {
    int side = maybe(30) ? block(x, b_.shape(x)[1], 1) : x;
    int sum = block(x, b_.shape(x)[1], 1);
    if (maybe(30)) std::swap(side, sum);
    sum = b_.add(sum, side);
    live_.push_back(maybe(70) ? b_.act(sum) : sum);
  }

  void gate(int x) {
    const int squeezed = b_.act(b_.conv(b_.average(x), b_.shape(x)[1], 1, 1, 1, true), "sigmoid");
    live_.push_back(b_.mul(maybe(50) ? x : squeezed, maybe(50) ? squeezed : x));
  }

  void join(int x) {
    std::vector<int> parts{x};
    for (const int other : live_) {
      auto a = b_.shape(x), b = b_.shape(other);
      a[1] = b[1] = 0;
      if (a == b && parts.size() < 3 && maybe(60)) parts.push_back(other);
    }
    if (b_.shape(b_.cat(parts))[1] <= 40) live_.push_back(static_cast<int>(b_.document()["values"].size()) - 1);
  }

  void as_tokens(int x) {
    const int channels = b_.shape(x)[1];
    int y = b_.linear(b_.permute(x, {0, 2, 3, 1}), channels);
    if (maybe(60)) y = b_.act(y, "gelu");
    y = b_.permute(y, {0, 3, 1, 2});
    live_.push_back(maybe(50) ? b_.add(y, x) : y);
  }

  // A convolution whose weight is computed from weights alone.
  void scaled_weight(int x) {
    const int channels = b_.shape(x)[1];
    const auto id = std::to_string(b_.document()["values"].size());
    const int weight =
        b_.mul(b_.parameter("w" + id, {channels, channels, 1, 1}), b_.parameter("s" + id, {channels, 1, 1, 1}));
    live_.push_back(b_.norm(b_.conv_with(x, weight, -1, 1, 1)));
  }

  void move() {
    const int x = any();
    switch (draw_() % 12) {
      case 0:
      case 1:
      case 2:
        return live_.push_back(block(x, one_of({1, 4, 8, 16, 17}), one_of({1, 1, 2})));
      case 3:
      case 4:
        return residual(x);
      case 5:
        return gate(x);
      case 6:
        return join(x);
      case 7:
        return live_.push_back(b_.pool(x, maybe(50)));
      case 8:
        return live_.push_back(maybe(50) ? b_.norm(x) : b_.act(x, activation()));
      case 9:
        return as_tokens(x);
      case 10:
        return scaled_weight(x);
      default:
        if (b_.shape(x)[1] % 2 != 0)
          return live_.push_back(
              b_.add(x, b_.parameter("c" + std::to_string(b_.document()["values"].size()), {b_.shape(x)[1], 1, 1})));
        const int half = b_.halves(x);
        live_.push_back(half);
        live_.push_back(half + 1);
    }
  }

  int tail(int x) {
    if (maybe(20)) return x;
    x = maybe(50) ? b_.flatten(maybe(70) ? b_.average(x) : x) : b_.mean(x);
    const int hidden = b_.act(b_.linear(x, 6), activation());
    return maybe(50) ? b_.act(b_.add(hidden, b_.linear(hidden, 6))) : b_.linear(hidden, 3);
  }

  GraphBuilder b_;
  std::mt19937 draw_;
  std::vector<int> live_;
};

}  // namespace strata::compiler
