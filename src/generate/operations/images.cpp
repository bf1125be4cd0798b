// SPDX-License-Identifier: Apache-2.0
// Images brought to another size, taken apart into windows and put together again, and the gradients of these.
#include <fmt/format.h>

#include "generate/operations.hpp"

namespace strata::generate {
namespace {

// Of an image with two axes. The scale is the caller's where one was given, else as the extents say.
void resized(Emitter& e, const char* function, const char* how) {
  if (e.target() == compiler::Target::cuda) throw Unsupported("on a GPU");
  if (e.shape(e.self()).size() != 4) throw Unsupported("images of other than two axes");
  double scales[2] = {};
  const auto& node = e.node();
  if (e.has("scale_factors")) {
    for (std::size_t i = 0; i < 2; ++i) scales[i] = 1 / node.find("scale_factors")->plain.at(i).get<double>();
  } else {
    if (e.has("scales_h")) scales[0] = 1 / node.number("scales_h");
    if (e.has("scales_w")) scales[1] = 1 / node.number("scales_w");
  }
  const auto scale = [](double value) { return value == 0 ? std::string() : double_literal(value); };
  e.call(function, {{"source", e.tensor(e.self())},
                    {"result", e.result()},
                    {"how", fmt::format("Resizing::{}", how)},
                    {"row_scale", scale(scales[0])},
                    {"column_scale", scale(scales[1])},
                    {"corners", e.has("align_corners") && node.flag("align_corners") ? "true" : ""}});
}

void windows(Emitter& e, const char* function) {
  if (e.target() == compiler::Target::cuda) throw Unsupported("on a GPU");
  e.call(function, {{"source", e.tensor(e.self())},
                    {"result", e.result()},
                    {"kernel", braces(e.integers("kernel_size", 2))},
                    {"dilation", braces(e.integers("dilation", 2))},
                    {"padding", braces(e.integers("padding", 2))},
                    {"stride", braces(e.integers("stride", 2))}});
}

void take_apart(Emitter& e) {
  windows(e, "take_apart");
}
void put_together(Emitter& e) {
  windows(e, "put_together");
}

}  // namespace

void add_images(Operations& table) {
  table["_upsample_nearest_exact2d"] = [](Emitter& e) { resized(e, "resize", "nearest_exact"); };
  table["upsample_nearest2d"] = [](Emitter& e) { resized(e, "resize", "nearest"); };
  table["upsample_bilinear2d"] = [](Emitter& e) { resized(e, "resize", "linear"); };
  table["upsample_bicubic2d"] = [](Emitter& e) { resized(e, "resize", "cubic"); };
  table["_upsample_nearest_exact2d_backward"] = [](Emitter& e) { resized(e, "resize_backward", "nearest_exact"); };
  table["upsample_nearest2d_backward"] = [](Emitter& e) { resized(e, "resize_backward", "nearest"); };
  table["upsample_bilinear2d_backward"] = [](Emitter& e) { resized(e, "resize_backward", "linear"); };
  table["upsample_bicubic2d_backward"] = [](Emitter& e) { resized(e, "resize_backward", "cubic"); };
  table["im2col"] = take_apart;
  table["col2im"] = put_together;
}

}  // namespace strata::generate
