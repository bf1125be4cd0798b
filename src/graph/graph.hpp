// SPDX-License-Identifier: Apache-2.0
// A captured network as plain data: values (tensors) and nodes (functional ATen operations), as capture writes them to
// graph.json (docs/bundle.md, "The graph"). Loaded and checked by load.hpp; what each operation means is in
// operations.hpp. No PyTorch, no tensors' contents. Levels link it as well (the CMake target strata_graph).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace strata::graph {

enum class Type : std::uint8_t { float32, float64, float16, bfloat16, int64, int32, int16, int8, uint8, boolean };

std::string_view name_of(Type type);           // PyTorch's: "float32"
std::string_view safetensors_name(Type type);  // "F32"
std::int64_t bytes_of(Type type);              // of one element
bool is_floating(Type type);
std::optional<Type> type_named(std::string_view torch_name);

using Shape = std::vector<std::int64_t>;
std::string to_string(const Shape& shape);  // "[1, 64, 56, 56]"
// Product of the extents, 1 for a scalar; nullopt when it does not fit.
std::optional<std::int64_t> elements_of(const Shape& shape);

enum class Origin : std::uint8_t { input, parameter, buffer, constant, node };

// One tensor. The loader guarantees that elements() * bytes_of(type) fits.
struct Value {
  std::string name;
  Type type = Type::float32;
  Shape shape;
  Origin origin = Origin::node;
  int producer = -1;           // index of the node that defines it; -1 unless origin is node
  std::vector<int> consumers;  // indices of the nodes that read it, ascending, each once

  std::int64_t elements() const { return *elements_of(shape); }
  std::int64_t bytes() const { return elements() * bytes_of(type); }
};

// An argument of a node is missing, or has another type than what asked for it: says which, where and what was got.
class ArgumentError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A tensor, a list of tensors, or plain JSON (null, bool, number, string, list).
struct Argument {
  enum class Kind : std::uint8_t { plain, tensor, tensors };
  std::string name;  // as in the operation's ATen schema
  Kind kind = Kind::plain;
  nlohmann::json plain;
  std::vector<int> values;  // indices into Graph::values; one for a tensor; -1 in a list: left out
};

// One operation. Arguments have the schema's names and order, with defaults filled in; the accessors throw
// ArgumentError.
struct Node {
  std::string op;    // "aten.conv2d.default"
  std::string name;  // unique in the graph: "conv2d_3"
  std::vector<Argument> args;
  std::vector<int> outputs;  // indices into Graph::values
  std::string module;        // "layer1.0.conv1"; empty: the network itself
  std::string module_type;   // "Conv2d"
  std::string source;        // "resnet.py:97"; may be empty

  std::string operation() const;  // "conv2d"; with its namespace unless that is aten: "torchvision.nms"
  std::string overload() const;   // "default"
  std::string where() const;      // for messages: node 'conv2d_3' (conv2d) in layer1.0.conv1 (Conv2d), resnet.py:97

  const Argument* find(std::string_view arg) const;  // nullptr: no such argument
  bool is_null(std::string_view arg) const;
  bool is_tensor(std::string_view arg) const;
  int tensor(std::string_view arg) const;
  std::optional<int> maybe_tensor(std::string_view arg) const;  // nullopt: null
  const std::vector<int>& tensors(std::string_view arg) const;  // -1: left out
  std::int64_t integer(std::string_view arg) const;
  std::optional<std::int64_t> maybe_integer(std::string_view arg) const;
  std::vector<std::int64_t> ints(std::string_view arg) const;
  std::optional<std::vector<std::int64_t>> maybe_ints(std::string_view arg) const;
  double number(std::string_view arg) const;  // integers too; "inf", "-inf" and "nan" as written by capture
  std::optional<double> maybe_number(std::string_view arg) const;
  bool flag(std::string_view arg) const;
  std::string text(std::string_view arg) const;
  std::optional<std::string> maybe_text(std::string_view arg) const;

 private:
  const Argument& get(std::string_view arg) const;
  const nlohmann::json& get_plain(std::string_view arg, const char* expected) const;
};

// The operations of these nodes, each once with its first place: "gru (gru, rnn.py:11), lstm (lstm, rnn.py:10 and 2
// more)". What a level lacks is said so by all levels, so that equal reasons read alike. Sorted by operation.
std::string operations_with_places(const std::vector<const Node*>& nodes);

struct Named {
  std::string name;
  int value = -1;
  bool frozen = false;  // a parameter that is not trained
};

enum class Mode : std::uint8_t { infer, train };
std::string_view name_of(Mode mode);

// The nodes are in an order in which they can run.
struct Graph {
  Mode mode = Mode::infer;
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<Named> inputs;      // in the bundle's order and by its names
  std::vector<Named> parameters;  // by their PyTorch names, as in weights/<set>.safetensors
  std::vector<Named> buffers;     // likewise
  std::vector<Named> constants;   // by their names in graph_constants.safetensors
  std::vector<Named> outputs;     // in the bundle's order and by its names
  std::vector<Named> updates;     // mode train: buffer -> its value after the step

  const Value& value(int index) const { return values.at(static_cast<std::size_t>(index)); }
};

}  // namespace strata::graph
