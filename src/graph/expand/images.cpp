// SPDX-License-Identifier: Apache-2.0
// Pixels that become channels and the reverse; lines and volumes brought to another size by what does so with images.
#include <fmt/format.h>

#include "graph/expand/expansion.hpp"
#include "graph/operations/rules.hpp"

namespace strata::graph {
namespace {

// Seen as `apart`, its axes in another order, seen as the result.
void reordered(Expansion& e, const Shape& apart, const Shape& order) {
  const int view = e.viewed(e.node().tensor("self"), apart, "apart");
  e.end_as(e.call("permute.default", {tensor_argument("self", view), plain_argument("dims", order)}, "turned"));
}

// All axes but the last three as one.
std::int64_t images_of(const Shape& shape) {
  return elements(Shape(shape.begin(), shape.end() - 3));
}

// [..., C r r, H, W] -> [..., C, H r, W r]
void pixel_shuffle(Expansion& e) {
  const Shape from = e.shape(e.node().tensor("self")), to = e.shape(e.result());
  if (from.size() < 3) return;
  const auto r = e.node().integer("upscale_factor"), height = from[from.size() - 2], width = from.back();
  reordered(e, {images_of(from), to[to.size() - 3], r, r, height, width}, {0, 1, 4, 2, 5, 3});
}

void pixel_unshuffle(Expansion& e) {
  const Shape from = e.shape(e.node().tensor("self")), to = e.shape(e.result());
  if (from.size() < 3) return;
  const auto r = e.node().integer("downscale_factor"), height = to[to.size() - 2], width = to.back();
  reordered(e, {images_of(from), from[from.size() - 3], height, r, width, r}, {0, 1, 3, 5, 2, 4});
}

void channel_shuffle(Expansion& e) {
  const Shape shape = e.shape(e.node().tensor("self"));
  const auto groups = e.node().integer("groups");
  if (shape.size() < 2 || groups <= 0 || shape[1] % groups != 0) return;
  const auto pixels = elements(Shape(shape.begin() + 2, shape.end()));
  reordered(e, {shape[0], groups, shape[1] / groups, pixels}, {0, 2, 1, 3});
}

// How an image is resized: the operation for two axes, and whether its corners lie on each other.
struct Resizing {
  const char* op;
  bool has_corners = false, corners = false;
};

// The factor that was given for an axis; null: as the extents say.
nlohmann::json factor(const Node& node, std::size_t axis, const char* name) {
  if (const auto* all = node.find("scale_factors"); all != nullptr && !node.is_null("scale_factors"))
    return all->plain.at(axis);
  return node.find(name) == nullptr ? nlohmann::json() : node.find(name)->plain;
}

int resized(Expansion& e, const Resizing& how, int image, const Shape& size, nlohmann::json rows,
            nlohmann::json columns, const std::string& name) {
  std::vector<Argument> arguments{tensor_argument("self", image), plain_argument("output_size", size)};
  if (how.has_corners) arguments.push_back(plain_argument("align_corners", how.corners));
  arguments.push_back(plain_argument("scales_h", std::move(rows)));
  arguments.push_back(plain_argument("scales_w", std::move(columns)));
  return e.call(how.op, std::move(arguments), name);
}

void resize(Expansion& e, Resizing how) {
  const auto& node = e.node();
  const int image = node.tensor(node.find("self") == nullptr ? "input" : "self");
  const Shape from = e.shape(image), to = e.shape(e.result());
  if (how.has_corners) how.corners = node.flag("align_corners");
  if (from.size() == 3) {
    const int rows = e.viewed(image, {from[0], from[1], 1, from[2]}, "image");
    return e.end_as(resized(e, how, rows, {1, to[2]}, nullptr,
                            factor(node, 0, node.find("scales") == nullptr ? "scales_w" : "scales"), "resized"));
  }
  if (from.size() != 5) return;
  const auto pixels = from[3] * from[4];
  const int columns = e.viewed(image, {from[0], from[1], from[2], pixels}, "columns");
  const int deep = resized(e, how, columns, {to[2], pixels}, factor(node, 0, "scales_d"), nullptr, "deep");
  const int slices = e.viewed(deep, {from[0], from[1] * to[2], from[3], from[4]}, "slices");
  e.end_as(
      resized(e, how, slices, {to[3], to[4]}, factor(node, 1, "scales_h"), factor(node, 2, "scales_w"), "resized"));
}
void nearest(Expansion& e) {
  resize(e, {"upsample_nearest2d.default"});
}
void nearest_exact(Expansion& e) {
  resize(e, {"_upsample_nearest_exact2d.default"});
}
void linear(Expansion& e) {
  resize(e, {"upsample_bilinear2d.default", true});
}

}  // namespace

std::span<const ExpansionRule> image_expansions() {
  static constexpr ExpansionRule all[] = {{"_upsample_nearest_exact1d", nearest_exact},
                                          {"_upsample_nearest_exact3d", nearest_exact},
                                          {"channel_shuffle", channel_shuffle},
                                          {"pixel_shuffle", pixel_shuffle},
                                          {"pixel_unshuffle", pixel_unshuffle},
                                          {"upsample_linear1d", linear},
                                          {"upsample_nearest1d", nearest},
                                          {"upsample_nearest3d", nearest},
                                          {"upsample_trilinear3d", linear}};
  return all;
}

}  // namespace strata::graph
