// SPDX-License-Identifier: Apache-2.0
#include "compiler/use_def.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "compiler/step_builder.hpp"

namespace strata::compiler {
namespace {

std::size_t slot(int value) {
  return static_cast<std::size_t>(value);
}

// In and storage of a step's outputs.
void settle_outputs(Program& program, const Step& step) {
  for (const int output : step.node.outputs) {
    auto& place = program.place(output);
    place.in = step.when == When::load ? Place::In::weights : Place::In::arena;
    if (!step.view) continue;
    const auto& source = program.place(operands_of(step).front());
    place.storage = source.storage;
    place.in = source.in;
  }
}

}  // namespace

bool Uses::only_reader(int value, int step) const {
  return !read_at_end[slot(value)] && consumers[slot(value)].size() == 1 && consumers[slot(value)].front() == step;
}

Uses uses_of(const Program& program) {
  const auto count = program.graph.values.size();
  Uses uses{std::vector<int>(count, -1), std::vector<std::vector<int>>(count), std::vector<bool>(count, false)};
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    for (const int value : operands_of(program.steps[s])) uses.consumers[slot(value)].push_back(static_cast<int>(s));
    for (const int value : program.steps[s].node.outputs) uses.producer[slot(value)] = static_cast<int>(s);
  }
  for (const auto* list : {&program.graph.outputs, &program.graph.updates})
    for (const auto& named : *list) uses.read_at_end[slot(named.value)] = true;
  return uses;
}

Result<void> recompute_places(Program& program) {
  program.places.resize(program.graph.values.size());
  for (std::size_t v = 0; v < program.places.size(); ++v) {
    auto& place = program.places[v];
    const auto& value = program.graph.values[v];
    const auto bytes = bytes_in(value, place.layout, program.block);
    if (!bytes)
      return fail(
          fmt::format("value '{}' {} cannot lie {}: its bytes are more than 64 bits can count, or it is no "
                      "float32 or bfloat16 tensor of four dimensions",
                      value.name, graph::to_string(value.shape), name_of(place.layout)));
    place = Place{
        .in = Place::In::none, .layout = place.layout, .bytes = *bytes, .storage = static_cast<int>(v), .offset = -1};
  }
  const auto& g = program.graph;
  for (const auto& input : g.inputs) program.place(input.value).in = Place::In::caller;
  for (const auto* list : {&g.parameters, &g.buffers, &g.constants})
    for (const auto& named : *list) program.place(named.value).in = Place::In::weights;
  for (const auto& step : program.steps) settle_outputs(program, step);
  for (const auto& output : g.outputs) {
    const int storage = program.place(output.value).storage;
    if (program.place(storage).in != Place::In::arena) continue;  // materialize_outputs has not seen it yet
    for (auto& place : program.places)
      if (place.storage == storage) place.in = Place::In::caller;
  }
  return {};
}

void materialize_outputs(Program& program) {
  std::set<int> taken;
  const auto uses = uses_of(program);
  for (auto& output : program.graph.outputs) {
    const auto& place = program.place(output.value);
    const auto written = uses.producer[slot(place.storage)];
    const bool by_run = written >= 0 && program.steps[slot(written)].when == When::run;
    if (by_run && taken.insert(place.storage).second) continue;
    const int copy = add_value(program, "output." + output.name, program.value(output.value));
    Step step = make_step(program, "strata.copy.default", {tensor_argument("self", output.value)}, {copy});
    step.node.name = "output." + output.name;
    program.steps.push_back(std::move(step));
    output.value = copy;
  }
}

}  // namespace strata::compiler
