// SPDX-License-Identifier: Apache-2.0
#include "generate/libtorch.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "common/escape.hpp"
#include "generate/names.hpp"

namespace strata::generate {
namespace {

using graph::Argument;
using graph::Node;
using Json = nlohmann::json;

tl::unexpected<Error> refused(const Node& node, const std::string& why) {
  return fail(fmt::format("{}: {}", node.where(), why), "", Exit::environment);
}

std::string type_literal(graph::Type type) {
  constexpr std::array names{"Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool"};
  return fmt::format("at::ScalarType::{}", names[static_cast<std::size_t>(type)]);
}

std::string number_literal(const Json& number) {
  if (number.is_boolean()) return number.get<bool>() ? "true" : "false";
  if (number.is_number_integer()) return fmt::format("{}", number.get<std::int64_t>());
  return double_literal(number.get<double>());
}

// Infinities and NaN are text in graph.json.
std::optional<double> spelt_number(const std::string& text) {
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

std::string list_literal(const Json& list) {
  std::vector<std::string> parts;
  for (const auto& element : list) parts.push_back(number_literal(element));
  const auto joined = fmt::format("{}", fmt::join(parts, ", "));
  const auto all = [&](auto is) { return !list.empty() && std::all_of(list.begin(), list.end(), is); };
  if (all([](const Json& value) { return value.is_boolean(); }))
    return fmt::format("std::array<bool, {}>{{{}}}", list.size(), joined);
  if (std::any_of(list.begin(), list.end(), [](const Json& value) { return value.is_number_float(); }))
    return fmt::format("at::ArrayRef<double>({{{}}})", joined);
  return fmt::format("Ints{{{}}}", joined);
}

std::string text_literal(const std::string& argument, const std::string& text) {
  if (const auto number = spelt_number(text)) return double_literal(*number);
  if (argument == "dtype")
    if (const auto type = graph::type_named(text)) return type_literal(*type);
  if (argument == "layout") return "at::kStrided";
  if (argument == "device") return "inputs.front().device()";
  if (argument == "memory_format")
    return text == "channels_last"     ? "at::MemoryFormat::ChannelsLast"
           : text == "preserve_format" ? "at::MemoryFormat::Preserve"
                                       : "at::MemoryFormat::Contiguous";
  return escape::cpp_string(text);
}

// Operations that give a list of tensors; others give one, or a tuple.
bool gives_list(const std::string& operation) {
  static const std::set<std::string_view> all{"split",  "split_with_sizes", "chunk",
                                              "unbind", "tensor_split",     "broadcast_tensors"};
  return all.contains(operation);
}

// A batch norm of mode train writes its statistics itself, as eager's does.
bool trains_statistics(const Node& node) {
  return node.operation() == "batch_norm" && node.outputs.size() > 1;
}

// The operation and overload that take the node's arguments: values have no strides here, so that a view may have to
// copy, and a number in the place of a tensor asks for another overload.
std::pair<std::string, std::string> called(const Node& node) {
  auto overload = node.overload();
  const auto* other = node.find("other");
  if (overload.starts_with("Tensor") && !overload.ends_with("_Scalar") && other != nullptr &&
      other->kind == Argument::Kind::plain)
    overload.replace(0, std::string_view("Tensor").size(), "Scalar");
  const bool views = node.operation() == "view" || node.operation() == "_unsafe_view";
  return {views ? "reshape" : node.operation(), overload};
}

class Writer {
 public:
  explicit Writer(const graph::Graph& graph)
      : graph_(graph), names_(graph.values.size()), last_(graph.values.size(), -1) {
    for (const auto* word :
         {"inputs", "outputs", "training", "dropout", "parameters", "buffers", "constants", "op", "at", "c10",
          "forward", "Ints", "Generated", "AtenNetwork", "NamedTensor", "Port", "make_generated_network"})
      taken_.unique(word);
    for (const auto* list : {&graph.parameters, &graph.buffers, &graph.constants})
      for (const auto& named : *list) names_[static_cast<std::size_t>(named.value)] = taken_.unique(named.name);
    for (const auto& input : graph.inputs) names_[static_cast<std::size_t>(input.value)] = taken_.unique(input.name);
    for (const auto& node : graph.nodes)
      for (const int value : node.outputs)
        names_[static_cast<std::size_t>(value)] = taken_.unique(graph.value(value).name);
    for (std::size_t n = 0; n < graph.nodes.size(); ++n)
      for (const auto& argument : graph.nodes[n].args)
        for (const int value : argument.values)
          if (value >= 0) last_[static_cast<std::size_t>(value)] = static_cast<int>(n);
    for (const auto* list : {&graph.outputs, &graph.updates})
      for (const auto& named : *list)
        last_[static_cast<std::size_t>(named.value)] = static_cast<int>(graph.nodes.size());
  }

  Result<std::string> write(const std::string& what) {
    std::string calls;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const auto text = call(static_cast<int>(n));
      if (!text) return text;
      calls += *text;
    }
    std::string file =
        fmt::format("// Written by strata from {}. One call of ATen for each operation of the captured network.\n",
                    escape::comment(what));
    file += "#include \"aten_network.hpp\"\n\n#include <ATen/ops/empty.h>\n";
    for (const auto& header : headers_) file += fmt::format("#include <ATen/ops/{}_ops.h>\n", header);
    file += "\n#include <limits>\n\nnamespace {\n\nstruct Generated final : AtenNetwork {\n";
    for (const auto* list : {&graph_.parameters, &graph_.buffers, &graph_.constants})
      for (const auto& named : *list)
        file += fmt::format("  at::Tensor {} = at::empty({}, {});\n", name(named.value),
                            "at::IntArrayRef(" + braces(graph_.value(named.value).shape) + ")",
                            type_literal(graph_.value(named.value).type));
    file += fmt::format(
        "\n  Generated() {{\n    parameters = {};\n    buffers = {};\n    constants = {};\n    inputs = {};\n    "
        "outputs = {};\n  }}\n\n",
        tensors(graph_.parameters), tensors(graph_.buffers), tensors(graph_.constants), ports(graph_.inputs),
        ports(graph_.outputs));
    file +=
        "  // `inputs` hides the member: here they are tensors.\n  std::vector<at::Tensor> forward(const "
        "std::vector<at::Tensor>& inputs) override {\n";
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i)
      file += fmt::format("    const at::Tensor& {} = inputs[{}];\n", name(graph_.inputs[i].value), i);
    file += calls + updates();
    std::vector<std::string> results;
    for (const auto& output : graph_.outputs) results.push_back(name(output.value));
    file += fmt::format(
        "    return {{{}}};\n  }}\n}};\n\n}}  // namespace\n\nAtenNetwork* make_generated_network() {{\n  return new "
        "Generated;\n}}\n",
        fmt::join(results, ", "));
    return file;
  }

 private:
  const std::string& name(int value) const { return names_[static_cast<std::size_t>(value)]; }

  std::string tensors(const std::vector<graph::Named>& list) const {
    std::vector<std::string> parts;
    for (const auto& element : list)
      parts.push_back(fmt::format("{{{}, &{}{}}}", escape::cpp_string(element.name), name(element.value),
                                  element.frozen ? ", true" : ""));
    return fmt::format("{{{}}}", fmt::join(parts, ",\n                  "));
  }
  std::string ports(const std::vector<graph::Named>& list) const {
    std::vector<std::string> parts;
    for (const auto& element : list)
      parts.push_back(fmt::format("{{{}, {}, {}}}", escape::cpp_string(element.name),
                                  type_literal(graph_.value(element.value).type),
                                  braces(graph_.value(element.value).shape)));
    return fmt::format("{{{}}}", fmt::join(parts, ", "));
  }

  std::string argument(const Node& node, const Argument& entry) const {
    if (entry.kind == Argument::Kind::tensor) return name(entry.values.front());
    if (entry.kind == Argument::Kind::tensors) {
      std::vector<std::string> parts;
      const bool some_left_out = node.operation().starts_with("index") || node.operation() == "_unsafe_index";
      for (const int value : entry.values) parts.push_back(value < 0 ? "std::nullopt" : name(value));
      const auto joined = fmt::format("{}", fmt::join(parts, ", "));
      return some_left_out ? fmt::format("c10::List<std::optional<at::Tensor>>({{{}}})", joined)
                           : fmt::format("{{{}}}", joined);
    }
    const bool trains = graph_.mode == graph::Mode::train;
    if (trains && (entry.name == "train" || (entry.name == "training" && trains_statistics(node))))
      return entry.plain == true ? "training" : "false";
    const bool drops = entry.name == "dropout_p" || (entry.name == "p" && node.find("train") != nullptr);
    if (trains && drops && entry.plain.is_number())
      return fmt::format("{} ? {} : 0.0", entry.name == "p" ? "dropout" : "training && dropout",
                         double_literal(entry.plain.get<double>()));
    if (entry.plain.is_null()) return "std::nullopt";
    if (entry.plain.is_array()) return list_literal(entry.plain);
    if (entry.plain.is_string()) return text_literal(entry.name, entry.plain.get<std::string>());
    return number_literal(entry.plain);
  }

  Result<std::string> call(int n) {
    const Node& node = graph_.nodes[static_cast<std::size_t>(n)];
    if (!node.op.starts_with("aten.")) return refused(node, fmt::format("{} is no operation of ATen", node.op));
    if (graph_.mode == graph::Mode::train && node.operation().starts_with("_native_batch_norm_legit"))
      return refused(node, "a batch norm that PyTorch has taken apart, which would train in eval mode too");
    const auto [operation, overload] = called(node);
    headers_.insert(operation);
    const auto function = operation + (overload == "default" ? "" : "_" + overload);
    std::vector<std::string> arguments;
    for (const auto& entry : node.args) arguments.push_back(argument(node, entry));
    const auto call = fmt::format("op::{}::call({})", function, fmt::join(arguments, ", "));
    const auto& shape = graph_.value(node.outputs.front()).shape;
    std::string from = node.module.empty() ? node.module_type : fmt::format("{} ({})", node.module, node.module_type);
    if (!node.source.empty()) from += ", " + node.source;
    std::string text = fmt::format("\n    // {} -> {}\n", escape::comment(from), brackets(shape));
    const auto count = trains_statistics(node) ? 1 : node.outputs.size();
    if (count == 1 && !gives_list(node.operation())) {
      text += fmt::format("    at::Tensor {} = {};\n", name(node.outputs.front()), call);
    } else {
      const auto all = taken_.unique("all_of_" + name(node.outputs.front()));
      text += fmt::format("    const auto {} = {};\n", all, call);
      for (std::size_t i = 0; i < count; ++i)
        text += gives_list(node.operation())
                    ? fmt::format("    at::Tensor {} = {}[{}];\n", name(node.outputs[i]), all, i)
                    : fmt::format("    at::Tensor {} = std::get<{}>({});\n", name(node.outputs[i]), i, all);
    }
    return text + released(node, n);
  }

  // Memory is given back where its last reader is, as Python does.
  std::string released(const Node& node, int n) const {
    std::string text;
    std::set<int> done;
    for (const auto& argument : node.args)
      for (const int value : argument.values)
        if (value >= 0 && last_[static_cast<std::size_t>(value)] == n &&
            graph_.value(value).origin == graph::Origin::node && done.insert(value).second)
          text += fmt::format("    {}.reset();\n", name(value));
    return text;
  }

  // What a step changes besides what batch norms write themselves.
  std::string updates() const {
    std::string text;
    for (const auto& update : graph_.updates) {
      const auto& from = graph_.value(update.value);
      if (from.producer >= 0 && trains_statistics(graph_.nodes[static_cast<std::size_t>(from.producer)])) continue;
      for (const auto& buffer : graph_.buffers)
        if (buffer.name == update.name) {
          text += fmt::format("    if (training) op::copy_::call({}, {}, false);\n", name(buffer.value),
                              name(update.value));
        }
    }
    return text;
  }

  const graph::Graph& graph_;
  std::vector<std::string> names_;
  std::vector<int> last_;  // node that reads a value last; the number of nodes: it leaves the network
  Names taken_;
  std::set<std::string> headers_;
};

}  // namespace

Result<std::string> libtorch_source(const graph::Graph& graph, const std::string& what) {
  try {
    return Writer(graph).write(what);
  } catch (const graph::ArgumentError& error) {
    return fail(error.what(), "remove the bundle's folder; it is made again");
  }
}

}  // namespace strata::generate
