// SPDX-License-Identifier: Apache-2.0
#include "compiler/layouts.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "compiler/op_traits.hpp"

namespace strata::compiler {
namespace {

using Options = std::vector<LayoutOption>;
constexpr std::array all_layouts{Layout::blocked, Layout::channels_last, Layout::plain};

class Rules {
 public:
  Rules(const Program& program, const Step& step) : p_(program), step_(step), node_(step.node) {}

  Options options() const {
    const Options plain{{.in = Layout::plain, .out = Layout::plain}};
    const auto name = node_.operation();
    const auto& out = p_.value(node_.outputs.front());
    if (step_.when == When::load) return plain;
    if (step_.view) return has_layouts(first()) || has_layouts(out) ? view() : plain;
    if (name == "permute") return permute();
    if (!has_layouts(first())) return plain;
    if (name == "strata.cast") return anything();
    if (name == "conv2d") return convolution();
    if (name == "mean") return mean();
    if (name == "cat") return joined();
    if (name == "strata.convolution_backward_data") return convolution_backward(p_.value(node_.tensor("weight")));
    if (name == "strata.train_convolution") return gradient_of_weight(first().shape[1]);
    if (name == "strata.convolution_backward_weights") return alone(gradient_of_weight(out.shape[0]));
    if (name == "strata.batch_norm_train" || name == "strata.batch_norm_backward") return alike_in(best());
    if (name == "strata.dropout_train" && is_weight(operands_of(step_).front())) return plain;  // of ones
    if (name == "max_pool2d" || name == "strata.max_pool_train" || name == "strata.max_pool_backward" ||
        name == "strata.dropout_train" || name == "strata.dropout_backward")
      return alike(true);
    if (is_average_pool(step_) && windows_are_alike(p_, step_)) return alike(true);
    if (name.starts_with("upsample_")) return alike(true);
    if (name == "conv_transpose2d") return alike_in(node_.integer("groups") == 1 ? best() : Layout::channels_last);
    if (is_elementwise(step_)) return elementwise();
    return plain;
  }

 private:
  bool is_weight(int value) const { return p_.place(value).in == Place::In::weights; }
  const graph::Value& first() const { return p_.value(operands_of(step_).front()); }
  bool whole(const graph::Value& value) const { return value.shape[1] % p_.block == 0; }

  // The same layout for operands and results; blocks only if `blocks`.
  static Options alike(bool blocks) {
    Options result;
    for (const auto layout : all_layouts)
      if (blocks || layout != Layout::blocked) result.push_back({.in = layout, .out = layout});
    return result;
  }

  // A conversion moves all elements, to wherever they shall lie.
  static Options anything() {
    Options result;
    for (const auto in : all_layouts)
      for (const auto out : all_layouts) result.push_back({.in = in, .out = out});
    return result;
  }

  // What the library's layers are fastest in: blocks in float32 on processors; in bfloat16 NHWC, where
  // oneDNN takes its kernels for AMX.
  bool in_blocks() const { return p_.target == Target::cpu && p_.type == graph::Type::float32; }
  Layout best() const { return in_blocks() ? Layout::blocked : Layout::channels_last; }
  static Options alike_in(Layout layout) { return {{.in = layout, .out = layout}}; }

  // Direct convolutions read and write blocks, padded ones too; one with few input channels reads them plain. Groups of
  // other sizes than blocks would straddle them, and are left in NHWC. On a GPU all are in NHWC.
  Options convolution() const {
    const auto in = first().shape[1], out = p_.value(node_.outputs.front()).shape[1];
    if (reads_plain(in)) return {{.in = Layout::plain, .out = Layout::blocked}};
    return blocks_of(in, out);
  }
  bool reads_plain(std::int64_t in) const { return in_blocks() && node_.integer("groups") == 1 && in <= 3; }

  // Of a layer and of its gradients: blocks, unless groups straddle them.
  Options blocks_of(std::int64_t in, std::int64_t out) const {
    const auto groups = node_.integer("groups");
    const bool depthwise = groups == in && groups == out;
    const bool blocks = groups == 1 || depthwise || (in / groups % p_.block == 0 && out / groups % p_.block == 0);
    return alike_in(blocks ? best() : Layout::channels_last);
  }
  Options convolution_backward(const graph::Value& weight) const {
    return blocks_of(weight.shape[1] * node_.integer("groups"), weight.shape[0]);
  }
  Options gradient_of_weight(std::int64_t out) const {
    const auto in = p_.value(node_.tensor("source")).shape[1];
    auto result = blocks_of(in, out);
    if (reads_plain(in)) result.front().plain_argument = "source";
    return result;
  }

  // A gradient that no update takes along is written row-major.
  static Options alone(Options gradient) {
    for (auto& option : gradient) option.out = Layout::plain;
    return gradient;
  }

  // Over both axes of an image: a global average pooling, with or without the axes of one pixel left.
  Options mean() const {
    auto dims = node_.find("dim") == nullptr ? std::vector<std::int64_t>()
                                             : node_.maybe_ints("dim").value_or(std::vector<std::int64_t>());
    for (auto& dim : dims) dim += dim < 0 ? 4 : 0;
    std::sort(dims.begin(), dims.end());
    if (dims != std::vector<std::int64_t>{2, 3}) return {{.in = Layout::plain, .out = Layout::plain}};
    if (node_.flag("keepdim")) return alike(true);
    Options result;
    for (const auto layout : all_layouts)
      if (layout != Layout::blocked || whole(first())) result.push_back({.in = layout, .out = Layout::plain});
    return result;
  }

  // Blocks can be joined along the channels only whole.
  Options joined() const {
    auto dim = node_.integer("dim");
    dim += dim < 0 ? 4 : 0;
    bool blocks = true;
    for (const int value : operands_of(step_)) {
      if (is_weight(value)) return {{.in = Layout::plain, .out = Layout::plain}};
      blocks = blocks && (dim != 1 || whole(p_.value(value)));
    }
    return alike(blocks);
  }

  // What is broadcast by channel reads alike beside any layout; what is broadcast along channels only where these are
  // not in blocks; another shape only plain.
  Options elementwise() const {
    const auto& out = p_.value(node_.outputs.front());
    if (!has_layouts(out)) return {{.in = Layout::plain, .out = Layout::plain}};
    bool blocks = true, others = true;
    const bool by_channel = node_.operation() == "strata.scale_shift" || node_.operation() == "batch_norm";
    for (const int index : operands_of(step_)) {
      const auto& value = p_.value(index);
      if (value.elements() == 1 || (by_channel && is_weight(index))) continue;
      const auto& shape = value.shape;
      const bool channels = shape.size() >= 3 && shape[shape.size() - 3] == out.shape[1];
      if (is_weight(index) || !has_layouts(value))
        others = others && channels && value.elements() == out.shape[1];
      else
        blocks = blocks && channels;
    }
    if (!others) return {{.in = Layout::plain, .out = Layout::plain}};
    return alike(blocks);
  }

  // A reshape is free between layouts that are as good as plain: an image of one pixel, whole blocks.
  Options view() const {
    const auto& to = p_.value(node_.outputs.front());
    Options result{{.in = Layout::plain, .out = Layout::plain, .bytes = 0, .view = true}};
    for (const auto in : all_layouts)
      for (const auto out : all_layouts) {
        if (in == Layout::plain && out == Layout::plain) continue;
        if (same_bytes(first(), in, Layout::plain, p_.block) && same_bytes(to, Layout::plain, out, p_.block))
          result.push_back({.in = in, .out = out, .bytes = 0, .view = true});
      }
    return result;
  }

  // A copy, unless it only gives the axes other names.
  Options permute() const {
    const auto& to = p_.value(node_.outputs.front());
    Options result;
    for (const auto& [in, out] :
         {std::pair(Layout::channels_last, Layout::plain), std::pair(Layout::plain, Layout::channels_last)})
      if (has_layouts(first()) && has_layouts(to) && !is_weight(operands_of(step_).front()) &&
          only_renames_axes(step_, in, out))
        result.push_back({.in = in, .out = out, .bytes = 0, .view = true});
    result.push_back({.in = Layout::plain, .out = Layout::plain, .bytes = 2 * to.bytes()});
    return result;
  }

  const Program& p_;
  const Step& step_;
  const graph::Node& node_;
};

bool fits(const Program& program, const Step& step, const LayoutOption& option) {
  const auto can = [&](int value, Layout layout) {
    const auto& described = program.value(value);
    return !has_layouts(described) || bytes_in(described, layout, program.block).has_value();
  };
  const auto operands = operands_of(step);
  return std::all_of(operands.begin(), operands.end(), [&](int v) { return can(v, option.in); }) &&
         std::all_of(step.node.outputs.begin(), step.node.outputs.end(), [&](int v) { return can(v, option.out); });
}

}  // namespace

std::vector<LayoutOption> layout_options(const Program& program, const Step& step) {
  auto all = Rules(program, step).options();
  const auto is_known = [&](Layout layout) { return layout != Layout::blocked || program.target == Target::cpu; };
  std::erase_if(all, [&](const LayoutOption& option) {
    return !fits(program, step, option) || !is_known(option.in) || !is_known(option.out);
  });
  if (all.empty()) all.push_back({});
  return all;
}

int bound_operand(const Step& step) {
  for (const char* name : {"workspace", "mask"})
    if (step.node.op.starts_with("strata.") && step.node.find(name) != nullptr) return step.node.tensor(name);
  return -1;
}

std::int64_t reorder_bytes(const Program& program) {
  std::int64_t total = 0;
  for (const auto& step : program.steps)
    if (step.node.operation() == "strata.reorder" && !step.view)
      total += program.place(operands_of(step).front()).bytes + program.place(step.node.outputs.front()).bytes;
  return total;
}

}  // namespace strata::compiler
