// SPDX-License-Identifier: Apache-2.0
#include "generate/stages.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "common/escape.hpp"
#include "generate/operations.hpp"

namespace strata::generate {
namespace {

constexpr std::size_t most_steps = 40;  // in a stage before it is split by the next component of module names

using compiler::Program;
using compiler::Step;
using compiler::When;

// The first `count` components of a module's path.
std::string prefix(const std::string& module, int count) {
  std::size_t at = 0;
  for (int i = 0; i < count; ++i) {
    at = module.find('.', i == 0 ? 0 : at + 1);
    if (at == std::string::npos) return module;
  }
  return module.substr(0, at);
}

std::vector<Stage> split(const Program& program, const std::vector<int>& steps, int depth) {
  std::vector<Stage> stages;
  for (const int i : steps) {
    const Step& step = program.steps[static_cast<std::size_t>(i)];
    const auto module = prefix(step.node.module, depth);
    // what the network itself does between two modules belongs to the one before, as does what is repeated for it
    if (stages.empty() || step.phase != phase_of(program, stages.back()) ||
        (!module.empty() && !step.again && module != stages.back().module))
      stages.push_back({"", module, {}});
    stages.back().steps.push_back(i);
  }
  return stages;
}

std::string shape_text(const Program& program, int value) {
  const auto& place = program.place(value);
  const auto layout =
      place.layout == compiler::Layout::plain ? "" : fmt::format(" {}", compiler::name_of(place.layout));
  return brackets(program.value(value).shape) + layout;
}

// "layer1.0.conv1 (Conv2d, resnet.py:97) with batch_norm_1, relu_1, again"
std::string title(const Step& step) {
  const auto& node = step.node;
  std::string text = node.module.empty() ? node.name : node.module;
  std::vector<std::string> about;
  if (!node.module_type.empty() && !node.module.empty()) about.push_back(node.module_type);
  if (!node.source.empty()) about.push_back(node.source);
  if (!about.empty()) text += fmt::format(" ({})", fmt::join(about, ", "));
  if (step.graph_nodes.size() > 1)
    text += fmt::format(" with {}", fmt::join(step.graph_nodes.begin() + 1, step.graph_nodes.end(), ", "));
  if (step.again) text += ", again";
  return text;
}

class StageWriter {
 public:
  StageWriter(const Program& program, const ValueNames& names, const std::vector<Stage>& stages, bool by_node)
      : program_(program), names_(names), stages_(stages), by_node_(by_node) {
    for (std::size_t i = 0; i < program.steps.size(); ++i)
      if (program.steps[i].when == When::load && !program.steps[i].view)
        for (const int value : program.steps[i].node.outputs) made_by_[value] = static_cast<int>(i);
  }

  Result<std::vector<std::vector<std::string>>> write() {
    find_shared();
    std::vector<std::vector<std::string>> all;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      lines_.clear();
      for (const int value : borrowed_[s])
        lines_.push_back(
            fmt::format("const Weight {} = p.saved({});", names_.name(value), escape::cpp_string(names_.name(value))));
      for (const int i : stages_[s].steps) STRATA_TRY(add_step(i));
      all.push_back(lines_);
    }
    return all;
  }

 private:
  // The load steps that a step needs, each after what it needs itself.
  void needed_by(const Step& step, std::vector<int>& into) const {
    for (const int value : compiler::operands_of(step)) {
      const auto it = made_by_.find(program_.place(value).storage);
      if (it == made_by_.end() || std::find(into.begin(), into.end(), it->second) != into.end()) continue;
      needed_by(program_.steps[static_cast<std::size_t>(it->second)], into);
      into.push_back(it->second);
    }
  }

  // What a stage uses of the load steps that an earlier one wrote.
  void find_shared() {
    borrowed_.resize(stages_.size());
    std::map<int, std::size_t> written;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      std::vector<int> needed;
      for (const int i : stages_[s].steps) needed_by(program_.steps[static_cast<std::size_t>(i)], needed);
      for (const int load : needed)
        if (const auto [at, fresh] = written.emplace(load, s); !fresh)
          for (const int value : program_.steps[static_cast<std::size_t>(load)].node.outputs) {
            borrowed_[s].push_back(value);
            saved_.insert(value);
          }
    }
  }

  Result<void> add_step(int index) {
    const Step& step = program_.steps[static_cast<std::size_t>(index)];
    std::vector<int> needed;
    needed_by(step, needed);
    std::string to;
    std::int64_t bytes = 0;
    for (const int value : step.node.outputs) {
      to += (to.empty() ? "" : ", ") + shape_text(program_, value);
      bytes += program_.place(value).bytes;
    }
    const auto operands = compiler::operands_of(step);
    if (!lines_.empty()) lines_.emplace_back();
    lines_.push_back("// " + escape::comment(title(step)));
    lines_.push_back(fmt::format("// {} -> {}, {} bytes",
                                 operands.empty() ? "nothing" : shape_text(program_, operands.front()), to,
                                 grouped(bytes)));
    const bool by_node = by_node_ || step.node.module.empty();
    lines_.push_back(fmt::format("p.step({});", escape::cpp_string(by_node ? step.node.name : step.node.module)));
    for (const int load : needed) STRATA_TRY(add_load_step(load));
    return emit(step);
  }

  Result<void> add_load_step(int index) {
    if (!written_.insert(index).second) return {};
    const Step& step = program_.steps[static_cast<std::size_t>(index)];
    const bool folds = step.node.operation() == "strata.scale_weight" || step.node.operation() == "strata.shift_bias";
    if (!folds) {
      for (const int value : step.node.outputs)
        if (program_.place(value).storage == value)
          lines_.push_back(fmt::format("const Weight {} = p.computed({}, {});", names_.name(value),
                                       braces(program_.value(value).shape),
                                       layout_literal(program_.place(value).layout, program_.block)));
      lines_.emplace_back("p.load_steps();");
    }
    STRATA_TRY(emit(step));
    if (!folds) lines_.emplace_back("p.run_steps();");
    for (const int value : step.node.outputs)
      if (saved_.contains(value))
        lines_.push_back(fmt::format("p.save({}, {});", escape::cpp_string(names_.name(value)), names_.name(value)));
    return {};
  }

  Result<void> emit(const Step& step) {
    const auto emit = emit_of(step);
    if (emit == nullptr)
      return fail(fmt::format("no operation {} ({})", step.node.operation(), compiler::where(step)), "",
                  Exit::environment);
    Emitter emitter(program_, names_, step);
    try {
      emit(emitter);
    } catch (const Unsupported& refused) {
      return fail(fmt::format("{}: {}", compiler::where(step), refused.what()), "", Exit::environment);
    } catch (const graph::ArgumentError& refused) {
      return fail(refused.what(), "remove the bundle's folder; it is made again");
    }
    lines_.insert(lines_.end(), emitter.lines().begin(), emitter.lines().end());
    return {};
  }

  const Program& program_;
  const ValueNames& names_;
  const std::vector<Stage>& stages_;
  const bool by_node_;
  std::map<int, int> made_by_;  // value -> load step
  std::vector<std::vector<int>> borrowed_;
  std::set<int> saved_, written_;
  std::vector<std::string> lines_;
};

}  // namespace

compiler::Phase phase_of(const Program& program, const Stage& stage) {
  return program.steps.at(static_cast<std::size_t>(stage.steps.front())).phase;
}

std::vector<Stage> stages_of(const Program& program) {
  std::vector<int> all;
  for (std::size_t i = 0; i < program.steps.size(); ++i)
    if (program.steps[i].when == When::run && !program.steps[i].view) all.push_back(static_cast<int>(i));
  std::vector<Stage> stages;
  for (auto& stage : split(program, all, 1)) {
    if (stage.steps.size() <= most_steps) {
      stages.push_back(std::move(stage));
      continue;
    }
    auto parts = split(program, stage.steps, 2);
    std::move(parts.begin(), parts.end(), std::back_inserter(stages));
  }
  Names names;
  // the function that calls all stages, and names of the kit that a function of this name would hide
  for (const char* word : {"build",       "relu",        "clip",
                           "hardswish",   "hardsigmoid", "silu",
                           "sigmoid",     "tangent",     "elu",
                           "gelu",        "gelu_tanh",   "exponential",
                           "square_root", "absolute",    "square",
                           "line",        "plus",        "times",
                           "arena",       "input",       "output",
                           "typed",       "Type",        "Program",
                           "Weight",      "Tensor",      "Layout",
                           "Pool",        "Shape",       "Port",
                           "name",        "inputs",      "outputs",
                           "state",       "labels",      "clip_norm",
                           "parameters",  "arena_bytes", "least_arena_bytes"})
    names.unique(word);
  for (auto& stage : stages)
    stage.name = names.unique((stage.module.empty() ? "network" : stage.module) +
                              (phase_of(program, stage) == compiler::Phase::backward ? "_backward" : ""));
  return stages;
}

std::vector<int> unknown_steps(const Program& program) {
  std::vector<int> unknown;
  for (std::size_t i = 0; i < program.steps.size(); ++i)
    if (!program.steps[i].view && emit_of(program.steps[i]) == nullptr) unknown.push_back(static_cast<int>(i));
  return unknown;
}

Result<std::vector<std::vector<std::string>>> statements_of(const Program& program, const ValueNames& names,
                                                            const std::vector<Stage>& stages, bool by_node) {
  return StageWriter(program, names, stages, by_node).write();
}

}  // namespace strata::generate
