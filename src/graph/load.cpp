// SPDX-License-Identifier: Apache-2.0
#include "graph/load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>

#include "common/json_bounds.hpp"
#include "common/nearest.hpp"
#include "common/outside.hpp"
#include "core/bundle_info.hpp"

namespace strata::graph {
namespace fs = std::filesystem;
using json = nlohmann::ordered_json;  // arguments keep the order of the schema

namespace {

// What is wrong with the file and where in it; becomes the Error of parse().
struct Damage {
  std::string what;
};

const json& field(const json& object, const char* name, const std::string& where) {
  if (!object.is_object()) throw Damage{fmt::format("{} is {}, not an object", where, object.type_name())};
  const auto it = object.find(name);
  if (it == object.end()) throw Damage{fmt::format("{} has no field '{}'", where, name)};
  return *it;
}

std::string text_field(const json& object, const char* name, const std::string& where, bool may_be_empty = false) {
  const auto& got = field(object, name, where);
  if (!got.is_string() || (!may_be_empty && got.get_ref<const std::string&>().empty()))
    throw Damage{
        fmt::format("{}: '{}' is {}, expected a{} string", where, name, got.dump(), may_be_empty ? "" : " non-empty")};
  return got.get<std::string>();
}

const json& list_field(const json& object, const char* name, const std::string& where) {
  const auto& got = field(object, name, where);
  if (!got.is_array()) throw Damage{fmt::format("{}: '{}' is {}, not a list", where, name, got.type_name())};
  return got;
}

int index_of(const json& got, const Graph& graph, const std::string& where) {
  if (!got.is_number_integer()) throw Damage{fmt::format("{}: {} is no index of a value", where, got.dump())};
  const auto count = static_cast<std::int64_t>(graph.values.size());
  const bool large = got.is_number_unsigned() && got.get<std::uint64_t>() >= static_cast<std::uint64_t>(count);
  if (large || got.get<std::int64_t>() < 0)
    throw Damage{fmt::format("{}: there is no value {}; the graph has {}", where, got.dump(), count)};
  return got.get<int>();
}

Value read_value(const json& item, const std::string& where) {
  Value value;
  value.name = text_field(item, "name", where);
  const auto dtype = text_field(item, "dtype", where);
  const auto type = type_named(dtype);
  if (!type) throw Damage{fmt::format("{} ('{}') has the unknown dtype '{}'", where, value.name, dtype)};
  value.type = *type;
  for (const auto& extent : list_field(item, "shape", where)) {
    const bool large =
        extent.is_number_unsigned() &&
        extent.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (!extent.is_number_integer() || large || extent.get<std::int64_t>() < 0)
      throw Damage{fmt::format("{} ('{}'): {} is no extent of a shape", where, value.name, extent.dump())};
    value.shape.push_back(extent.get<std::int64_t>());
  }
  const auto elements = elements_of(value.shape);
  if (!elements || *elements > std::numeric_limits<std::int64_t>::max() / bytes_of(*type))
    throw Damage{fmt::format("{} ('{}'): the shape {} has more bytes than 64 bits can count", where, value.name,
                             to_string(value.shape))};
  return value;
}

Argument read_argument(const std::string& name, const json& got, const Graph& graph, const std::string& where) {
  Argument argument;
  argument.name = name;
  if (!got.is_object()) {
    argument.plain = got;
    return argument;
  }
  const auto place = fmt::format("{}, argument '{}'", where, name);
  if (got.size() == 1 && got.contains("value")) {
    argument.kind = Argument::Kind::tensor;
    argument.values.push_back(index_of(got["value"], graph, place));
  } else if (got.size() == 1 && got.contains("values") && got["values"].is_array()) {
    argument.kind = Argument::Kind::tensors;
    for (const auto& element : got["values"])
      argument.values.push_back(element.is_null() ? -1 : index_of(element, graph, place));
  } else {
    throw Damage{fmt::format(R"({}: {} is neither {{"value":n}} nor {{"values":[...]}} nor plain)", place, got.dump())};
  }
  return argument;
}

Node read_node(const json& item, std::size_t number, const Graph& graph) {
  auto where = fmt::format("node {}", number);
  Node node;
  node.name = text_field(item, "name", where);
  node.op = text_field(item, "op", where);
  where = fmt::format("node {} '{}' ({})", number, node.name, node.op);
  if (std::count(node.op.begin(), node.op.end(), '.') < 2)
    throw Damage{fmt::format("{}: 'op' is not of the form namespace.name.overload", where)};
  node.module = text_field(item, "module", where, true);
  node.module_type = text_field(item, "module_type", where, true);
  node.source = text_field(item, "source", where, true);
  const auto& args = field(item, "args", where);
  if (!args.is_object()) throw Damage{fmt::format("{}: 'args' is {}, not an object", where, args.type_name())};
  for (const auto& [name, got] : args.items()) node.args.push_back(read_argument(name, got, graph, where));
  for (const auto& element : list_field(item, "outputs", where))
    node.outputs.push_back(index_of(element, graph, where + ", outputs"));
  if (node.outputs.empty()) throw Damage{fmt::format("{} has no outputs", where)};
  return node;
}

std::vector<Named> read_named(const json& all, const char* list, const char* name, const Graph& graph) {
  std::vector<Named> result;
  std::set<std::string> seen;
  for (const auto& item : list_field(all, list, "the graph")) {
    const auto where = fmt::format("{}[{}]", list, result.size());
    Named named{text_field(item, name, where), index_of(field(item, "value", where), graph, where)};
    if (const auto frozen = item.find("frozen"); frozen != item.end()) {
      if (!frozen->is_boolean())
        throw Damage{fmt::format("{}: 'frozen' is {}, expected a flag", where, frozen->dump())};
      named.frozen = frozen->get<bool>();
    }
    if (!seen.insert(named.name).second) throw Damage{fmt::format("{}: '{}' is listed twice", where, named.name)};
    result.push_back(std::move(named));
  }
  return result;
}

// Says what defines a value.
std::string definition(const Graph& graph, int index) {
  const auto& value = graph.value(index);
  if (value.producer >= 0) return fmt::format("node '{}'", graph.nodes[static_cast<std::size_t>(value.producer)].name);
  return std::array{"an input", "a parameter", "a buffer", "a constant",
                    "a node"}[static_cast<std::size_t>(value.origin)];
}

void define(Graph& graph, std::vector<bool>& defined, int index, Origin origin, int producer,
            const std::string& where) {
  const auto at = static_cast<std::size_t>(index);
  if (defined[at])
    throw Damage{fmt::format("{} defines value {} ('{}'), which {} has defined before", where, index,
                             graph.values[at].name, definition(graph, index))};
  defined[at] = true;
  graph.values[at].origin = origin;
  graph.values[at].producer = producer;
}

// Every value is defined once; origin and producer are set.
void connect_definitions(Graph& graph) {
  std::vector<bool> defined(graph.values.size(), false);
  const auto take = [&](const std::vector<Named>& list, Origin origin, const char* what) {
    for (const auto& element : list)
      define(graph, defined, element.value, origin, -1, fmt::format("the {} '{}'", what, element.name));
  };
  take(graph.inputs, Origin::input, "input");
  take(graph.parameters, Origin::parameter, "parameter");
  take(graph.buffers, Origin::buffer, "buffer");
  take(graph.constants, Origin::constant, "constant");
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    for (const int output : graph.nodes[n].outputs)
      define(graph, defined, output, Origin::node, static_cast<int>(n), fmt::format("node '{}'", graph.nodes[n].name));
  for (std::size_t v = 0; v < defined.size(); ++v)
    if (!defined[v]) throw Damage{fmt::format("nothing defines value {} ('{}')", v, graph.values[v].name)};
}

// Every value is defined before it is used, so that there is no cycle; consumers are set.
void connect_uses(Graph& graph) {
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto& node = graph.nodes[n];
    for (const auto& argument : node.args)
      for (const int index : argument.values) {
        if (index < 0) continue;
        auto& value = graph.values[static_cast<std::size_t>(index)];
        if (value.producer >= static_cast<int>(n))
          throw Damage{fmt::format("{}: argument '{}' is value {} ('{}'), which {}", node.where(), argument.name, index,
                                   value.name,
                                   value.producer == static_cast<int>(n)
                                       ? "is its own output: a cycle"
                                       : fmt::format("node '{}' defines only later (or there is a cycle)",
                                                     graph.nodes[static_cast<std::size_t>(value.producer)].name))};
        if (value.consumers.empty() || value.consumers.back() != static_cast<int>(n))
          value.consumers.push_back(static_cast<int>(n));
      }
  }
}

void check_updates(const Graph& graph) {
  if (graph.mode == Mode::infer && !graph.updates.empty())
    throw Damage{fmt::format("mode is infer, and buffer '{}' is updated", graph.updates.front().name)};
  for (const auto& update : graph.updates)
    for (const auto& buffer : graph.buffers)
      if (buffer.name == update.name && (graph.value(buffer.value).shape != graph.value(update.value).shape ||
                                         graph.value(buffer.value).type != graph.value(update.value).type))
        throw Damage{fmt::format("the update of buffer '{}' is {} {}, the buffer is {} {}", update.name,
                                 name_of(graph.value(update.value).type), to_string(graph.value(update.value).shape),
                                 name_of(graph.value(buffer.value).type), to_string(graph.value(buffer.value).shape))};
}

Graph read(const json& all) {
  const auto& version = field(all, "graph", "the file");
  if (version != 1) throw Damage{fmt::format("'graph' is {}, this strata reads version 1", version.dump())};
  Graph graph;
  const auto mode = text_field(all, "mode", "the graph");
  if (mode != "infer" && mode != "train")
    throw Damage{fmt::format("'mode' is '{}', allowed are infer and train", mode)};
  graph.mode = mode == "train" ? Mode::train : Mode::infer;
  const auto& values = list_field(all, "values", "the graph");
  if (values.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) throw Damage{"too many values"};
  for (const auto& item : values)
    graph.values.push_back(read_value(item, fmt::format("value {}", graph.values.size())));
  graph.inputs = read_named(all, "inputs", "name", graph);
  graph.parameters = read_named(all, "parameters", "name", graph);
  graph.buffers = read_named(all, "buffers", "name", graph);
  graph.constants = read_named(all, "constants", "name", graph);
  std::set<std::string> names;
  for (const auto& item : list_field(all, "nodes", "the graph")) {
    graph.nodes.push_back(read_node(item, graph.nodes.size(), graph));
    if (!names.insert(graph.nodes.back().name).second)
      throw Damage{fmt::format("two nodes are called '{}'", graph.nodes.back().name)};
  }
  graph.outputs = read_named(all, "outputs", "name", graph);
  if (graph.outputs.empty()) throw Damage{"the graph has no outputs"};
  graph.updates = read_named(all, "updates", "buffer", graph);
  connect_definitions(graph);
  connect_uses(graph);
  check_updates(graph);
  return graph;
}

// What a network without a graph can still be used for, by where it came from.
const char* without_graph(const nlohmann::json& info) {
  const auto kind = outside::text_or(outside::field(info, "model"), "kind");
  if (kind == "onnx")
    return "onnxruntime and openvino run the file itself: ./strata compare FILE --levels onnxruntime,openvino";
  if (kind == "torchscript")
    return "eager and torchscript run the archive itself: ./strata compare FILE --levels eager,torchscript";
  return "levels that run the PyTorch module (eager, compile) can still run it";
}

const char* const again = "remove the bundle's folder; it is made again";

}  // namespace

Result<Graph> parse(std::string_view text, const std::string& where) {
  if (const auto fault = json_fault(text, {.bytes = 1 << 30, .values = 50'000'000}); !fault.empty())
    return fail(fmt::format("{} is not JSON that can be read: {}", where, fault), again);
  const auto all = json::parse(text, nullptr, false);
  try {
    return read(all);
  } catch (const Damage& damage) {
    return fail(fmt::format("{}: {}", where, damage.what), again);
  }
}

Result<Graph> load(const fs::path& bundle) {
  const auto path = bundle / "graph.json";
  std::ifstream in(path);
  if (!in) {
    const auto info = core::read_bundle_info(bundle, false).value_or(nlohmann::json());
    if (const auto& graph = outside::field(info, "graph"); !outside::flag_or(graph, "ok", true)) {
      const auto at = outside::text_or(graph, "where");
      return fail(fmt::format("the network has no captured graph: {}{}{}", outside::text_or(graph, "what"),
                              at.empty() ? "" : ", at ", at),
                  without_graph(info), Exit::environment);
    }
    return fail(fmt::format("{} cannot be read", path.string()), again);
  }
  std::ostringstream text;
  text << in.rdbuf();
  return parse(text.str(), path.string());
}

Result<void> check_tensors(const Graph& graph, const std::vector<Named>& expected, const SafeTensors& file) {
  for (const auto& element : expected) {
    const auto& value = graph.value(element.value);
    const auto* tensor = file.find(element.name);
    if (tensor == nullptr) {
      const auto near = nearest(element.name, file.names());
      return fail(fmt::format("{} has no tensor '{}', which the graph needs as {} {}", file.where(), element.name,
                              name_of(value.type), to_string(value.shape)),
                  near ? fmt::format("the nearest name in it is '{}'", *near) : again);
    }
    if (tensor->dtype != safetensors_name(value.type) || tensor->shape != value.shape)
      return fail(fmt::format("{}: '{}' is {} {}, the graph needs {} {}", file.where(), element.name, tensor->dtype,
                              to_string(tensor->shape), safetensors_name(value.type), to_string(value.shape)),
                  "the weights must be those of the captured model");
  }
  return {};
}

Result<SafeTensors> open_constants(const Graph& graph, const fs::path& bundle) {
  if (graph.constants.empty()) return SafeTensors();
  auto file = SafeTensors::map(bundle / "graph_constants.safetensors");
  if (!file) return tl::unexpected(file.error());
  STRATA_TRY(check_tensors(graph, graph.constants, *file));
  return file;
}

}  // namespace strata::graph
