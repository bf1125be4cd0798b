// SPDX-License-Identifier: Apache-2.0
// What oneDNN keeps of recurrent layers of many shapes beside the most that a program plans for: prints each shape
// whose workspace is larger, then how many were tried.
#include <cmath>
#include <cstdio>
#include <random>

#include "kit/recurrent.hpp"

int main() {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  std::mt19937 random(1);
  const auto extent = [&](int most) {  // small ones as often as large ones, and such as strides are made wider for
    if (random() % 4 == 0 && most >= 1024) return static_cast<dnnl::memory::dim>(256 * (1 + random() % 4));
    return static_cast<dnnl::memory::dim>(std::pow(most, std::uniform_real_distribution<>(0, 1)(random)));
  };
  constexpr int shapes = 400;
  for (int i = 0; i < shapes; ++i) {
    kit::recurrent::Layer layer{.kind = static_cast<kit::Recurrence>(i % 4), .reverse = random() % 2 == 0};
    layer.gives_cell = layer.has_cell();
    layer.steps = extent(200);
    layer.batch = extent(64);
    layer.inputs = extent(1200);
    layer.hidden = extent(1200);
    const auto pd = kit::recurrent::forward_of(engine, true, layer, {});
    const auto kept = static_cast<std::int64_t>(kit::recurrent::desc_of(pd, DNNL_ARG_WORKSPACE).get_size());
    const auto planned =
        4 * kit::most_workspace_floats(layer.kind, layer.steps, layer.batch, layer.inputs, layer.hidden);
    if (kept > planned)
      std::printf("kind %d, %ld steps, batch %ld, %ld inputs, %ld hidden: %ld bytes, planned %ld\n",
                  static_cast<int>(layer.kind), static_cast<long>(layer.steps), static_cast<long>(layer.batch),
                  static_cast<long>(layer.inputs), static_cast<long>(layer.hidden), static_cast<long>(kept),
                  static_cast<long>(planned));
  }
  std::printf("%d shapes\n", shapes);
}
