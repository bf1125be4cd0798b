// SPDX-License-Identifier: Apache-2.0
#include "generate/emitter.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/escape.hpp"

namespace strata::generate {
namespace {

using compiler::Place;

std::string as_shape(const std::string& text, const graph::Shape& own, const graph::Shape& other) {
  return own == other ? text : fmt::format("{}.as({})", text, braces(other));
}

// Fields joined into lines of at most 112 columns.
std::vector<std::string> wrapped(const std::string& head, const Fields& fields, const std::string& tail) {
  constexpr std::size_t width = 112;
  std::vector<std::string> lines{head};
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const bool last = i + 1 == fields.size();
    const auto text = fmt::format(".{} = {}{}", fields[i].first, fields[i].second, last ? tail : ",");
    const bool first = i == 0;
    if (!first && lines.back().size() + 1 + text.size() > width)
      lines.push_back("    " + text);
    else
      lines.back() += (first ? "" : " ") + text;
  }
  if (fields.empty()) lines.back() += tail;
  return lines;
}

void leave_out_empty(Fields& fields) {
  std::erase_if(fields, [](const auto& field) { return field.second.empty(); });
}

}  // namespace

std::string layout_literal(compiler::Layout layout, std::int64_t block) {
  if (layout == compiler::Layout::plain) return "Layout::plain";
  return layout == compiler::Layout::channels_last ? "Layout::channels_last" : fmt::format("Layout::blocked{}", block);
}

std::string type_literal(graph::Type type) {
  switch (type) {
    case graph::Type::float32:
    case graph::Type::bfloat16:
    case graph::Type::int64:
    case graph::Type::int32:
    case graph::Type::uint8:
    case graph::Type::boolean:
      return fmt::format("Type::{}", graph::name_of(type) == "bool" ? "boolean" : graph::name_of(type));
    default:
      return {};
  }
}

ValueNames::ValueNames(const compiler::Program& program, const std::set<std::string>& in_constants)
    : program_(program) {
  Names names;
  for (const char* word : {"arena", "input", "output", "typed", "Type", "Layout", "Tensor", "Weight", "Program"})
    names.unique(word);
  std::set<int> generic;  // what load steps compute by operations of a run, whose name may be the operation's
  for (const auto& step : program.steps)
    if (step.when == compiler::When::load && !step.node.op.starts_with("strata.s"))
      generic.insert(step.node.outputs.begin(), step.node.outputs.end());
  for (std::size_t i = 0; i < program.graph.values.size(); ++i)
    names_.push_back(
        names.unique(program.graph.values[i].name + (generic.contains(static_cast<int>(i)) ? "_at_load" : "")));
  std::set<std::string> changed;  // by a training step
  if (program.graph.mode == graph::Mode::train)
    for (const auto& update : program.graph.updates) changed.insert(update.name);
  const auto add_file = [&](const graph::Named& named, const std::string& kind) {
    const auto& value = program.value(named.value);
    const auto text = escape::cpp_string(named.name);
    if (value.type == graph::Type::float32)
      files_[named.value] = fmt::format("p.{}({}, {})", kind, text, braces(value.shape));
    else if (const auto type = type_literal(value.type); !type.empty())
      files_[named.value] = fmt::format("p.{}({}, {}, {})", kind == "constant" ? "constant_listed" : "listed", text,
                                        type, braces(value.shape));
  };
  for (const auto& parameter : program.graph.parameters)
    add_file(parameter, changed.contains(parameter.name) ? "parameter" : "weight");
  for (const auto& buffer : program.graph.buffers)
    add_file(buffer, in_constants.contains(buffer.name) ? "constant"
                     : changed.contains(buffer.name)    ? "buffer"
                                                        : "weight");
  for (const auto& constant : program.graph.constants) add_file(constant, "constant");
  int number = 0;
  for (const auto& input : program.graph.inputs) inputs_.emplace(program.place(input.value).storage, number++);
  number = 0;
  for (const auto& output : program.graph.outputs) outputs_.emplace(program.place(output.value).storage, number++);
}

bool ValueNames::is_weight(int value) const {
  return program_.place(value).in == Place::In::weights;
}

std::string ValueNames::tensor(int value) const {
  return "v::" + name(value);
}

std::string ValueNames::weight(int value) const {
  const int storage = program_.place(value).storage;
  const auto file = files_.find(storage);
  return as_shape(file == files_.end() ? name(storage) : file->second, program_.value(storage).shape,
                  program_.value(value).shape);
}

std::vector<std::string> ValueNames::plan() const {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const auto& place = program_.places[i];
    const auto& value = program_.graph.values[i];
    const auto type = type_literal(value.type);
    if ((place.in != Place::In::arena && place.in != Place::In::caller) || type.empty()) continue;
    if (value.shape == graph::Shape{0}) continue;  // what a step of training changes
    const auto layout =
        place.layout == compiler::Layout::plain ? "" : ", " + layout_literal(place.layout, program_.block);
    std::string where;
    if (place.in == Place::In::arena) {
      const auto offset = program_.place(place.storage).offset;
      where = fmt::format("arena({}, {}{})", offset, braces(value.shape), layout);
    } else if (const auto input = inputs_.find(place.storage); input != inputs_.end()) {
      where = fmt::format("input({}, {}{})", input->second, braces(value.shape), layout);
    } else if (const auto output = outputs_.find(place.storage); output != outputs_.end()) {
      where = fmt::format("output({}, {}{})", output->second, braces(value.shape), layout);
    } else {
      continue;
    }
    if (value.type != graph::Type::float32) where = fmt::format("typed({}, {})", type, where);
    lines.push_back(
        fmt::format("inline constexpr Tensor {} = {};  // {} bytes", names_[i], where, grouped(place.bytes)));
  }
  return lines;
}

int Emitter::self() const {
  for (const auto& argument : node().args)
    if (argument.kind == graph::Argument::Kind::tensor) return argument.values.front();
  throw Unsupported("no tensor to read");
}

std::vector<std::int64_t> Emitter::integers(std::string_view argument, std::size_t count) const {
  auto all = node().ints(argument);
  if (all.size() == 1) all.resize(count, all.front());
  if (all.size() != count)
    throw Unsupported(fmt::format("'{}' is {}, {} numbers are needed", argument, brackets(all), count));
  return all;
}

std::int64_t Emitter::dimension(std::string_view argument, std::size_t rank) const {
  const auto axis = node().integer(argument);
  const auto counted = axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis;
  if (counted < 0 || counted >= static_cast<std::int64_t>(rank))
    throw Unsupported(fmt::format("'{}' is {}, the tensor has {} dimensions", argument, axis, rank));
  return counted;
}

std::string Emitter::tensor(int value) const {
  const auto& described = program_.value(value);
  if (!compiler::is_computed_with(described.type)) return whole_numbers(value);
  const std::size_t most = program_.target == compiler::Target::cuda ? 6 : 8;
  if (described.shape.size() > most)
    throw Unsupported(fmt::format("the tensor '{}' of {} dimensions, at most {} are known", described.name,
                                  described.shape.size(), most));
  return names_.is_weight(value) ? fmt::format("p.stored({})", names_.weight(value)) : names_.tensor(value);
}

std::string Emitter::whole_numbers(int value) const {
  const auto& described = program_.value(value);
  const bool weight = names_.is_weight(value);
  // programs on a GPU read them where they look rows up by a list of the network, and nowhere else
  const bool known = program_.target == compiler::Target::cpu || (weight && described.type == graph::Type::int64);
  if (type_literal(described.type).empty() || !known || described.shape.size() > 8)
    throw Unsupported(fmt::format("the tensor '{}' of type {} and {} dimensions", described.name,
                                  graph::name_of(described.type), described.shape.size()));
  return weight ? names_.weight(value) : names_.tensor(value);
}

std::string Emitter::weight(int value) const {
  if (!names_.is_weight(value))
    throw Unsupported(
        fmt::format("'{}' where a weight is needed: it is computed in every run", program_.value(value).name));
  static_cast<void>(tensor(value));  // of a type and rank that are known
  return names_.weight(value);
}

std::string function_of(const compiler::PostOp& post) {
  const auto alpha = float_literal(post.alpha), beta = float_literal(post.beta);
  const auto& name = post.operation;
  if (name == "relu" || name == "hardswish" || name == "hardsigmoid" || name == "silu" || name == "sigmoid" ||
      name == "gelu" || name == "gelu_tanh")
    return name + "()";
  if (name == "tanh") return "tangent()";
  if (name == "leaky_relu") return fmt::format("relu({})", alpha);
  if (name == "elu") return fmt::format("elu({})", alpha);
  if (name == "clamp") return fmt::format("clip({}, {})", alpha, beta);
  throw Unsupported(fmt::format("the activation {}", name));
}

std::string Emitter::posts() const {
  std::string text;
  for (const auto& post : step_.posts) {
    text += text.empty() ? "" : ", ";
    if (post.kind == compiler::PostOp::Kind::activation)
      text += function_of(post);
    else
      text += fmt::format("{}({})", post.kind == compiler::PostOp::Kind::add ? "plus" : "times", tensor(post.value));
  }
  return text.empty() ? text : "{" + text + "}";
}

void Emitter::call(const std::string& function, Fields fields) {
  call_between(function + "(p, {", std::move(fields), "});");
}

void Emitter::call_between(const std::string& head, Fields fields, const std::string& tail) {
  leave_out_empty(fields);
  for (auto& line : wrapped(head, fields, tail)) lines_.push_back(std::move(line));
}

const std::string& Emitter::file_name(int value) const {
  for (const auto* list : {&program_.graph.parameters, &program_.graph.buffers, &program_.graph.constants})
    for (const auto& named : *list)
      if (named.value == value) return named.name;
  throw Unsupported(fmt::format("'{}' where a weight is needed", program_.value(value).name));
}

void Emitter::weight_call(const std::string& function, const Fields& arguments) {
  Fields fields = arguments;
  leave_out_empty(fields);
  for (auto& line : wrapped(fmt::format("const Weight {} = {}(p, {{", names_.name(output()), function), fields, "});"))
    lines_.push_back(std::move(line));
}

}  // namespace strata::generate
