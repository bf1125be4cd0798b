// SPDX-License-Identifier: Apache-2.0
#include "report/graph.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "common/extents.hpp"
#include "graph/flops.hpp"
#include "report/format.hpp"
#include "report/table.hpp"

namespace strata::report {
namespace {
using graph::Aliasing;
using graph::Checked;
using graph::Graph;
using graph::Node;
using graph::Work;
using Json = nlohmann::ordered_json;

std::string output_of(const Graph& graph, const Node& node) {
  const auto first = extents(graph.value(node.outputs.front()).shape);
  return node.outputs.size() == 1 ? first : fmt::format("{} +{}", first, node.outputs.size() - 1);
}

// The end says most of a module's path, the beginning of a name.
std::string shortened(const std::string& text, std::size_t most, bool keep_end) {
  if (text.size() <= most) return text;
  if (most <= 3) return text.substr(0, most);
  return keep_end ? "..." + text.substr(text.size() - most + 3) : text.substr(0, most - 3) + "...";
}

std::string bytes_of(const Work& work) {
  return work.aliasing == Aliasing::none
             ? size(static_cast<double>(work.bytes_read) + static_cast<double>(work.bytes_written))
             : "view";
}

std::string flops_text(bool counted, double flops) {
  if (!counted) return "-";
  return flops == 0 ? "0 " : scaled(flops);
}

// Not report::table, which would take a module called 3.conv1 for a number.
std::string node_table(const Graph& graph, const Checked& checked, std::size_t width) {
  std::vector<Cells> rows{{"node", "module", "output", "FLOPs", "bytes"}};
  std::size_t output = rows[0][2].size(), name = rows[0][0].size();
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto& node = graph.nodes[n];
    rows.push_back({printable(node.name), node.module.empty() ? "-" : printable(node.module),
                    shortened(output_of(graph, node), 20, false),
                    flops_text(checked.nodes[n].counted, static_cast<double>(checked.nodes[n].flops)),
                    bytes_of(checked.nodes[n])});
    output = std::max(output, rows.back()[2].size());
    name = std::max(name, node.name.size());
  }
  constexpr std::size_t number = 7;
  const auto left = width - std::min(width, output + 2 * number + 4 * 2);
  name = std::min(name, left / 2);
  std::size_t module = 0;
  for (auto& row : rows) {
    row[0] = shortened(row[0], name, false);
    row[1] = shortened(row[1], left - name, true);
    module = std::max(module, row[1].size());
  }
  std::string text;
  for (const auto& row : rows)
    text += fmt::format("{:<{}}  {:<{}}  {:>{}}  {:>{}}  {:>{}}\n", row[0], name, row[1], module, row[2], output,
                        row[3], number, row[4], number);
  return text;
}

std::string totals(const Graph& graph, const Checked& checked, std::size_t width) {
  struct Sum {
    int nodes = 0;
    bool counted = false;  // any of them
    double flops = 0, bytes = 0;
  };
  std::map<std::string, Sum> by_operation;
  double bytes = 0;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto& work = checked.nodes[n];
    auto& sum = by_operation[graph.nodes[n].operation()];
    ++sum.nodes;
    sum.counted = sum.counted || work.counted;
    sum.flops += static_cast<double>(work.flops);
    sum.bytes += static_cast<double>(work.bytes_read) + static_cast<double>(work.bytes_written);
  }
  std::vector<std::pair<std::string, Sum>> sorted(by_operation.begin(), by_operation.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second.flops, a.second.bytes) > std::pair(b.second.flops, b.second.bytes);
  });
  std::vector<Cells> rows;
  for (const auto& [name, sum] : sorted) {
    rows.push_back({shortened(name, width > 50 ? width - 40 : 10, false), std::to_string(sum.nodes),
                    flops_text(sum.counted, sum.flops), size(sum.bytes)});
    bytes += sum.bytes;
  }
  rows.push_back({"all", std::to_string(graph.nodes.size()), flops_text(true, static_cast<double>(checked.total.flops)),
                  size(bytes)});
  return table({"operation", numbers("nodes"), numbers("FLOPs"), numbers("bytes")}, rows, Format::text);
}

std::string uncounted_names(const Checked& checked) {
  return fmt::format("{}", fmt::join(graph::names_of(checked.uncounted), ", "));
}

std::string unknown(const Graph& graph, const Checked& checked) {
  if (checked.unknown.empty()) return "";
  std::set<std::string> names;
  for (const int n : checked.unknown) names.insert(graph.nodes[static_cast<std::size_t>(n)].operation());
  std::string text = fmt::format("\nunknown to strata: {} (levels that run the captured graph may lack {})\n",
                                 fmt::join(names, ", "), names.size() == 1 ? "it" : "them");
  for (const int n : checked.unknown)
    text += fmt::format("  {}\n", printable(graph.nodes[static_cast<std::size_t>(n)].where()));
  return text;
}

Json described(const graph::Value& value) {
  return {{"name", value.name}, {"dtype", graph::name_of(value.type)}, {"shape", value.shape}};
}

Json node_json(const Graph& graph, const Node& node, const Work& work) {
  static constexpr const char* views[] = {"none", "reshape", "strided"};
  auto inputs = Json::array(), outputs = Json::array();
  for (const auto& argument : node.args)
    for (const int index : argument.values)
      if (index >= 0) inputs.push_back(described(graph.value(index)));
  for (const int index : node.outputs) outputs.push_back(described(graph.value(index)));
  return {{"name", node.name},
          {"operation", node.operation()},
          {"op", node.op},
          {"module", node.module},
          {"module_type", node.module_type},
          {"source", node.source},
          {"inputs", inputs},
          {"outputs", outputs},
          {"known", work.known},
          {"view", views[static_cast<std::size_t>(work.aliasing)]},
          {"flops", work.counted ? Json(work.flops) : Json()},
          {"bytes_read", work.bytes_read},
          {"bytes_written", work.bytes_written}};
}

// For a label in double quotes; a backslash of its own would begin an escape.
std::string quoted(const std::string& text) {
  std::string out;
  for (const char c : printable(text)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string edges(const Graph& graph, std::size_t number) {
  std::string text;
  std::set<int> drawn;
  for (const auto& argument : graph.nodes[number].args)
    for (const int index : argument.values) {
      if (index < 0 || !drawn.insert(index).second) continue;
      const auto& value = graph.value(index);
      if (value.producer >= 0)
        text += fmt::format("  n{} -> n{} [label=\"{}\"];\n", value.producer, number, extents(value.shape));
      if (value.origin == graph::Origin::input)
        text += fmt::format("  v{} -> n{} [label=\"{}\"];\n", index, number, extents(value.shape));
    }
  return text;
}

std::int64_t parameters_of(const Graph& graph) {
  std::int64_t count = 0;
  for (const auto& parameter : graph.parameters) count += graph.value(parameter.value).elements();
  return count;
}

}  // namespace

std::string graph_text(const Graph& graph, const Checked& checked, const std::string& title, std::size_t width) {
  std::string text = fmt::format("{}\n{} nodes, {} parameters, {}FLOPs{}\n\n", printable(title), graph.nodes.size(),
                                 count(static_cast<double>(parameters_of(graph))),
                                 flops_text(true, static_cast<double>(checked.total.flops)),
                                 checked.uncounted.empty() ? "" : " and what is not counted");
  text += node_table(graph, checked, width);
  text += "\n" + totals(graph, checked, width);
  text += "\nFLOPs: products of matrices, a multiply-add is two. Bytes: each tensor once,\nviews none.\n";
  if (!checked.uncounted.empty())
    text += fmt::format("not counted, and in no sum (-): {}\n", printable(uncounted_names(checked)));
  return text + unknown(graph, checked);
}

Json graph_json(const Graph& graph, const Checked& checked, const std::string& title) {
  auto nodes = Json::array(), unknown = Json::array(), inputs = Json::array(), outputs = Json::array(),
       updates = Json::array();
  for (std::size_t n = 0; n < graph.nodes.size(); ++n)
    nodes.push_back(node_json(graph, graph.nodes[n], checked.nodes[n]));
  for (const int n : checked.unknown) unknown.push_back(graph.nodes[static_cast<std::size_t>(n)].name);
  for (const auto& input : graph.inputs) inputs.push_back(described(graph.value(input.value)));
  for (const auto& output : graph.outputs) outputs.push_back(described(graph.value(output.value)));
  for (const auto& update : graph.updates) updates.push_back(update.name);
  return {{"case", title},
          {"mode", graph::name_of(graph.mode)},
          {"parameters", parameters_of(graph)},
          {"inputs", inputs},
          {"outputs", outputs},
          {"updates", updates},
          {"total",
           {{"flops", checked.total.flops},
            {"bytes_read", checked.total.bytes_read},
            {"bytes_written", checked.total.bytes_written}}},
          {"flops_uncounted", graph::names_of(checked.uncounted)},
          {"unknown", unknown},
          {"nodes", nodes}};
}

std::string graph_dot(const Graph& graph, const Checked& checked, const std::string& title) {
  std::string text = fmt::format("digraph \"{}\" {{\n  node [shape=box, fontname=\"Helvetica\"];\n", quoted(title));
  for (const auto& input : graph.inputs)
    text += fmt::format("  v{} [shape=ellipse, label=\"{}\"];\n", input.value, quoted(input.name));
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto& node = graph.nodes[n];
    const char* style = !checked.nodes[n].known                       ? ", color=red"
                        : checked.nodes[n].aliasing != Aliasing::none ? ", style=dashed"
                                                                      : "";
    text += fmt::format("  n{} [label=\"{}\\n{}\\n{}\"{}];\n", n, quoted(node.name), quoted(node.module),
                        output_of(graph, node), style) +
            edges(graph, n);
  }
  for (const auto& output : graph.outputs) {
    const auto& value = graph.value(output.value);
    const auto from = value.producer >= 0                    ? fmt::format("n{}", value.producer)
                      : value.origin == graph::Origin::input ? fmt::format("v{}", output.value)
                                                             : std::string();
    text += fmt::format("  \"out {0}\" [shape=ellipse, label=\"{0}\"];\n", quoted(output.name));
    if (!from.empty()) text += fmt::format("  {} -> \"out {}\";\n", from, quoted(output.name));
  }
  return text + "}\n";
}

}  // namespace strata::report
