// SPDX-License-Identifier: Apache-2.0
#include "report/program.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "common/extents.hpp"
#include "compiler/layouts.hpp"
#include "compiler/op_traits.hpp"
#include "report/format.hpp"
#include "report/table.hpp"

namespace strata::report {
namespace {
using compiler::Place;
using compiler::Program;
using compiler::Step;
using compiler::When;
using Json = nlohmann::ordered_json;

constexpr std::array places{"none", "caller", "weights", "arena"};

const char* name_of(Place::In in) {
  return places[static_cast<std::size_t>(in)];
}

std::string shortened(const std::string& text, std::size_t most) {
  return text.size() <= most || most < 4 ? text.substr(0, most) : text.substr(0, most - 3) + "...";
}

// The values whose bytes a step's result takes over, by name; empty: none.
std::string written_over(const Program& program, const Step& step, int output) {
  for (const int operand : compiler::operands_of(step))
    if (program.same_storage(operand, output)) return program.value(operand).name;
  return "";
}

// "at 4096", "at 4096 over relu_3", "caller", "view of relu_3".
std::string place_of(const Program& program, const Step& step) {
  const int output = step.node.outputs.front();
  const auto over = written_over(program, step, output);
  if (step.view) return "view of " + over;
  const auto& place = program.place(output);
  const auto where =
      place.in == Place::In::arena ? fmt::format("at {}", program.place(place.storage).offset) : name_of(place.in);
  return over.empty() ? where : fmt::format("{} over {}", where, over);
}

// "conv2d + add + relu", "winograd conv2d + relu"
std::string work_of(const Step& step) {
  std::string text = step.node.operation();
  if (step.kernel != compiler::Kernel::library) text = fmt::format("{} {}", compiler::name_of(step.kernel), text);
  for (const auto& post : step.posts) text += " + " + post.operation;
  return text;
}

std::string step_table(const Program& program, std::size_t width) {
  std::vector<Cells> rows{{"when", "step", "does", "result", "layout", "lies"}};
  for (const auto& step : program.steps) {
    const int first = step.node.outputs.front();
    rows.push_back({step.when == When::load ? "load" : "run", printable(step.node.name), work_of(step),
                    extents(program.value(first).shape), std::string(compiler::name_of(program.place(first).layout)),
                    printable(place_of(program, step))});
  }
  std::vector<std::size_t> columns(rows[0].size(), 0);
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) columns[i] = std::max(columns[i], row[i].size());
  // what is too wide is cut where names are, the widest first
  const auto total = [&] {
    std::size_t sum = 2 * (columns.size() - 1);
    for (const auto column : columns) sum += column;
    return sum;
  };
  constexpr std::size_t least = 8;
  while (total() > width) {
    auto& widest = *std::max_element(columns.begin() + 1, columns.end());
    if (widest <= least) break;
    --widest;
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += fmt::format("{:<{}}{}", shortened(row[i], columns[i]), columns[i], i + 1 < row.size() ? "  " : "");
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

struct Counts {
  int load = 0, run = 0, views = 0, reorders = 0;
};

Counts counts_of(const Program& program) {
  Counts counts;
  for (const auto& step : program.steps) {
    if (step.view)
      ++counts.views;
    else
      ++(step.when == When::load ? counts.load : counts.run);
    counts.reorders += !step.view && step.node.operation() == "strata.reorder";
  }
  return counts;
}

// The forward phase, and what of it is repeated.
struct Repeated {
  int steps = 0, again = 0;
  std::int64_t flops = 0, flops_again = 0;
};

Repeated repeated_in(const Program& program) {
  Repeated result;
  for (const auto& step : program.steps) {
    if (step.view || step.when != When::run || (!step.again && step.phase != compiler::Phase::forward)) continue;
    ++(step.again ? result.again : result.steps);
    (step.again ? result.flops_again : result.flops) += compiler::flops_of(program, step);
  }
  return result;
}

// JSON has no infinite numbers; as capture writes them.
Json number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

Json value_json(const Program& program, int index) {
  const auto& value = program.value(index);
  const auto& place = program.place(index);
  Json all{{"name", value.name},
           {"dtype", graph::name_of(value.type)},
           {"shape", value.shape},
           {"layout", compiler::name_of(place.layout)},
           {"in", name_of(place.in)},
           {"bytes", place.bytes},
           {"storage", program.value(place.storage).name}};
  all["offset"] = place.in == Place::In::arena ? Json(program.place(place.storage).offset) : Json();
  return all;
}

Json step_json(const Program& program, const Step& step) {
  auto inputs = Json::array(), outputs = Json::array(), posts = Json::array();
  for (const int value : compiler::operands_of(step)) inputs.push_back(program.value(value).name);
  for (const int value : step.node.outputs) outputs.push_back(value_json(program, value));
  for (const auto& post : step.posts)
    posts.push_back({{"operation", post.operation},
                     {"alpha", number(post.alpha)},
                     {"beta", number(post.beta)},
                     {"value", post.value < 0 ? Json() : Json(program.value(post.value).name)}});
  return {{"name", step.node.name},
          {"operation", step.node.operation()},
          {"kernel", compiler::name_of(step.kernel)},
          {"posts", posts},
          {"when", step.when == When::load ? "load" : "run"},
          {"view", step.view},
          {"again", step.again},
          {"module", step.node.module},
          {"source", step.node.source},
          {"graph_nodes", step.graph_nodes},
          {"inputs", inputs},
          {"outputs", outputs}};
}

}  // namespace

std::string program_text(const Program& program, const std::string& title, const std::string& pass, std::size_t width) {
  const auto counts = counts_of(program);
  const auto bytes = [](std::int64_t b) { return size(static_cast<double>(b)); };
  std::string text = fmt::format(
      "{}\nafter {}: {} calls in a run, {} of them reorders ({})\n{} steps at load, {} views\n", printable(title), pass,
      counts.run, counts.reorders, bytes(compiler::reorder_bytes(program)), counts.load, counts.views);
  text += fmt::format("arena: {} ({} bytes), {} above the least possible {}\n\n", bytes(program.arena_bytes),
                      program.arena_bytes, bytes(program.arena_bytes - program.least_arena_bytes),
                      bytes(program.least_arena_bytes));
  if (program.budget) text.insert(text.size() - 1, repeated_text(program) + "\n");
  return text + step_table(program, width);
}

std::string repeated_text(const Program& program) {
  const auto repeats = repeated_in(program);
  const auto share =
      repeats.flops == 0 ? 0 : static_cast<double>(repeats.flops_again) / static_cast<double>(repeats.flops);
  return fmt::format(
      "{} of {} steps of the forward phase are repeated in the backward phase: {}FLOPs, {} of the "
      "forward phase's",
      repeats.again, repeats.steps, scaled(static_cast<double>(repeats.flops_again)), percent(100 * share));
}

Json program_json(const Program& program, const std::string& title, const std::string& pass) {
  auto steps = Json::array(), inputs = Json::array(), outputs = Json::array();
  for (const auto& step : program.steps) steps.push_back(step_json(program, step));
  const auto repeated = repeated_in(program);
  for (const auto& input : program.graph.inputs)
    inputs.push_back({{"name", input.name}, {"value", program.value(input.value).name}});
  for (const auto& output : program.graph.outputs)
    outputs.push_back({{"name", output.name}, {"value", program.value(output.value).name}});
  return {{"case", title},
          {"pass", pass},
          {"block", program.block},
          {"arena_bytes", program.arena_bytes},
          {"least_arena_bytes", program.least_arena_bytes},
          {"reorder_bytes", compiler::reorder_bytes(program)},
          {"repeated_steps", repeated.again},
          {"repeated_flops", repeated.flops_again},
          {"inputs", inputs},
          {"outputs", outputs},
          {"steps", steps}};
}

}  // namespace strata::report
