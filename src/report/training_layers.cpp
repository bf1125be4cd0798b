// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "report/training_sections.hpp"

namespace strata::report {
namespace {

using analysis::LayerSize;
using analysis::SizesByStep;
constexpr std::size_t kMostColumns = 40;

// Of more steps than columns every second, third, ... is shown.
document::HeatMap map_of(const char* id, const char* title, const std::string& level,
                         const std::map<std::int64_t, std::vector<LayerSize>>& steps,
                         std::optional<double> LayerSize::*value) {
  document::HeatMap map;
  map.id = id;
  map.title = title;
  map.row_title = "layer";
  map.column_title = "step";
  map.scale = {.title = fmt::format("root mean square, {}", level), .logarithmic = true};
  const auto every = (steps.size() + kMostColumns - 1) / kMostColumns;
  std::vector<const std::vector<LayerSize>*> columns;
  std::size_t place = 0;
  for (const auto& [step, sizes] : steps) {
    if (place++ % every != 0) continue;
    map.columns.push_back(fmt::format("{}", step));
    columns.push_back(&sizes);
  }
  for (const auto& layer_size : *columns.front()) map.rows.push_back(layer_size.layer);
  for (const auto& layer : map.rows) {
    std::vector<double> row;
    for (const auto* sizes : columns) {
      const auto it =
          std::find_if(sizes->begin(), sizes->end(), [&](const LayerSize& size) { return size.layer == layer; });
      const auto known = it == sizes->end() ? std::nullopt : (*it).*value;
      row.push_back(known.value_or(std::numeric_limits<double>::quiet_NaN()));
    }
    map.values.push_back(std::move(row));
  }
  return map;
}

// One sentence a repeat: where it was seen first, and in how many of the steps that were looked at.
void add_troubles(document::Section& section, const std::string& level, const SizesByStep& sizes,
                  const core::Recipe& recipe) {
  for (const auto& [repeat, steps] : sizes) {
    std::string first;
    std::size_t count = 0;
    for (const auto& [step, layers] : steps)
      if (const auto why = analysis::signal_fault(layers, recipe, step - 1); why && count++ == 0)
        first = fmt::format("{}, repeat {}, step {}: {}", level, repeat + 1, step, why->words);
    if (count > 0)
      section.items.push_back(
          document::Text{fmt::format("{}; in {} of the {} steps that were looked at", first, count, steps.size()),
                         document::Text::Kind::warning});
  }
}

}  // namespace

std::optional<document::Section> layers_section(const std::vector<TrainedLevel>& levels, const core::Recipe& recipe) {
  document::Section section{.id = "layers", .title = "Layers"};
  std::vector<document::HeatMap> maps;
  for (const auto& level : levels) {
    if (!level.measured()) continue;
    const auto sizes = sizes_of(level);
    if (sizes.empty()) continue;
    add_troubles(section, level.row->name(), sizes, recipe);
    if (!maps.empty()) continue;
    const auto& [repeat, steps] = *sizes.begin();
    const auto name = fmt::format("{}, repeat {}", level.row->name(), repeat + 1);
    maps = {map_of("activations", "Activations by layer", name, steps, &LayerSize::activation),
            map_of("gradients", "Gradients by layer", name, steps, &LayerSize::gradient)};
  }
  if (maps.empty()) return std::nullopt;
  if (section.items.empty())
    section.items.push_back(document::Text{"No layer's signal vanished or exploded in the steps looked at."});
  maps.back().note =
      "Of the level's own state on the batch of its next step, computed by eager. A layer is what has weights of two "
      "dimensions or more. A gradient vanishes where a step of it is rounded away, and explodes where the step is "
      "larger than the weights.";
  for (auto& map : maps) section.items.push_back(std::move(map));
  return section;
}

}  // namespace strata::report
