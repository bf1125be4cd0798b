// SPDX-License-Identifier: Apache-2.0
// A document with everything in it that a document can have, as `strata train` might say it.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "report/document.hpp"

namespace strata::document {

// A curve of `points` values that falls or rises from `first` towards `last`, with a band around it.
inline Line example_line(const std::string& level, const std::string& kind, double first, double last, int points) {
  Line line{.name = level + (kind.empty() ? "" : ", " + kind), .group = level, .dashed = !kind.empty()};
  for (int i = 0; i < points; ++i) {
    const double left = std::exp(-4.0 * i / points), wave = 0.015 * (first - last) * std::sin(1.7 * i);
    const double value = last + (first - last) * left + wave, width = 0.06 * std::abs(first - last) * (0.3 + left);
    line.x.push_back(i * 1000.0 / points);
    line.y.push_back(value);
    line.low.push_back(value - width);
    line.high.push_back(value + width);
  }
  return line;
}

inline Figure example_curves() {
  Panel loss{
      .title = "Loss", .x = {.title = "step"}, .y = {.title = "cross entropy", .unit = "nats", .logarithmic = true}};
  Panel accuracy{.title = "Accuracy",
                 .x = {.title = "time", .format = NumberFormat::seconds},
                 .y = {.title = "test accuracy", .format = NumberFormat::percent}};
  double shift = 0;
  for (const char* level : {"eager", "compile", "libtorch", "onednn"}) {
    loss.lines.push_back(example_line(level, "", 2.3, 0.041 + shift, 60));
    loss.lines.push_back(example_line(level, "validation", 2.3, 0.09 + shift, 10));
    accuracy.lines.push_back(example_line(level, "validation", 0.1, 0.9345 - shift, 10));
    shift += 0.02;
  }
  return {.id = "curves",
          .title = "Training curves",
          .panels = {loss, accuracy},
          .note = "Lines: the median of five seeds. Bands: from the lowest to the highest of them."};
}

inline Table example_table() {
  const auto number = [](double value, NumberFormat format, double width) {
    return Number{.value = value, .format = format, .low = value - width, .high = value + width};
  };
  Table table{.id = "levels",
              .title = "Levels",
              .columns = {{.id = "level", .title = "level", .align = Align::left},
                          {.id = "accuracy", .title = "accuracy"},
                          {.id = "loss", .title = "loss", .unit = "nats"},
                          {.id = "time_to_target", .title = "time to 90%"},
                          {.id = "speed", .title = "speed", .unit = "samples/s"},
                          {.id = "speedup", .title = "speedup"},
                          {.id = "memory", .title = "peak memory"},
                          {.id = "verdict", .title = "verdict", .align = Align::left}},
              .note = "Intervals are 99% CIs over seeds."};
  table.rows = {{"eager", number(0.9345, NumberFormat::percent, 0.0041), number(0.0412, NumberFormat::digits, 0.0031),
                 number(81.2, NumberFormat::seconds, 2.5), number(12345, NumberFormat::count, 130),
                 Number{.value = 1, .format = NumberFormat::ratio},
                 Number{.value = 812e6, .format = NumberFormat::bytes}, "reference"},
                {"compile@max-autotune", number(0.9339, NumberFormat::percent, 0.0044),
                 number(0.0415, NumberFormat::digits, 0.0033), number(57.0, NumberFormat::seconds, 1.9),
                 number(17533, NumberFormat::count, 190), number(1.42, NumberFormat::ratio, 0.05),
                 Number{.value = 934e6, .format = NumberFormat::bytes}, "faster"}};
  std::vector<Cell> failed{"libtorch"};
  for (int i = 0; i < 6; ++i) failed.emplace_back(Absent{"out of memory"});
  failed.emplace_back("out of memory after 3 of 30 epochs; the last checkpoint is kept");
  table.rows.push_back(failed);
  table.rows.push_back(
      {"onednn", Number{.value = 0.9301, .format = NumberFormat::percent}, Number{}, Absent{"never reached"}});
  return table;
}

inline HeatMap example_heat_map() {
  HeatMap map{.id = "speedups",
              .title = "Speedup by batch and resolution",
              .row_title = "batch",
              .column_title = "resolution",
              .columns = {"96x96", "128x128", "160x160", "192x192", "224x224", "320x320"},
              .scale = {.title = "speedup of compile over eager", .logarithmic = true, .format = NumberFormat::ratio},
              .middle = 1,
              .note = "Empty: out of memory."};
  for (int row = 0; row < 6; ++row) {
    map.rows.push_back(std::to_string(1 << row));
    map.values.emplace_back();
    for (int column = 0; column < 6; ++column) map.values.back().push_back(0.7 * std::pow(1.13, row + 1.1 * column));
  }
  map.values[5][5] = std::nan("");
  return map;
}

// One of two alternatives: a layer without its largest field, and one that is even.
inline Surface example_surface(const std::string& id, const std::string& mode, bool is_detail) {
  Surface surface{.id = id,
                  .title = "Time of a sample (mode " + mode + ")",
                  .row_title = "size",
                  .column_title = "batch",
                  .rows = {"32", "64", "128"},
                  .columns = {"1", "8", "64"},
                  .layers = {{.name = "eager"}, {.name = "compile"}},
                  .scale = {.title = "time of a sample", .logarithmic = true, .format = NumberFormat::seconds},
                  .note = "Hovering shows the 99% interval.",
                  .choices = {{"mode", mode}},
                  .is_detail = is_detail};
  for (auto& layer : surface.layers)
    for (int row = 0; row < 3; ++row) {
      layer.fields.emplace_back();
      for (int column = 0; column < 3; ++column) {
        const double value = 0.004 * std::pow(3.0, row) / std::pow(layer.name == "eager" ? 2.0 : 1.6, column);
        layer.fields.back().push_back(
            {.number = {.value = value, .format = NumberFormat::seconds, .low = 0.97 * value, .high = 1.03 * value},
             .outcome = layer.name == "eager" ? "" : "slower than eager"});
      }
    }
  surface.layers[0].fields[2][2] = {.outcome = "out of memory"};
  surface.layers[1].fields[0][0].label = "(4.0 ms)";
  return surface;
}

inline Document example_document() {
  Document document{
      .title = "strata train: resnet18 on cifar10",
      .subtitle = "resnet18/train/b128/32x32/fp32/cpu/t8, 30 epochs of SGD, 5 seeds, levels in turn",
      .summary =
          "compile@max-autotune reaches 90% test accuracy 1.42 times as fast as eager (99% CI 1.37 to 1.47) and "
          "ends with the same accuracy. libtorch ran out of memory.",
      .facts = {{"machine", "AMD EPYC 9654, 8 cores, 32 GB"},
                {"environment", "Python 3.11.9, torch 2.15.0"},
                {"run", "2026-11-25-train-1"}}};
  document.sections = {
      {.id = "result",
       .title = "Result",
       .items = {Text{"Every level proved equal work for the first 20 steps."}, example_table()}},
      {.id = "curves", .title = "Curves", .items = {example_curves()}},
      {.id = "sweep", .title = "Speedups", .items = {example_heat_map()}},
      {.id = "times",
       .title = "Times",
       .items = {example_surface("infer", "infer", false), example_surface("train", "train", true)}},
      {.id = "trust",
       .title = "Trust",
       .items = {
           Text{"The machine was busy: other processes took 12% of its cores. Intervals are wider than they need be.",
                Text::Kind::warning},
           Text{"Two of five seeds of onednn ended early.", Text::Kind::warning}, Text{"To see more seeds:"},
           Text{"./strata train resnet18 --data cifar10 --levels eager,compile@max-autotune,libtorch,onednn --seeds 10 "
                "--epochs 30",
                Text::Kind::command}}}};
  return document;
}

}  // namespace strata::document
