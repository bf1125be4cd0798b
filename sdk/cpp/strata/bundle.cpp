// SPDX-License-Identifier: Apache-2.0
#include "strata/bundle.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <utility>

namespace strata {

using nlohmann::json;

namespace {

constexpr std::size_t alignment_bytes = 64;  // what PyTorch's own allocator gives

template <class T>
T field(const json& object, const char* name, const std::string& where) {
  const auto it = object.find(name);
  if (it == object.end()) throw Failure("bad_request", fmt::format("{} has no field '{}'", where, name));
  try {
    return it->get<T>();
  } catch (const json::exception&) {
    throw Failure("bad_request", fmt::format("{}: field '{}' has the wrong type, got {}", where, name, it->dump()));
  }
}

std::vector<Declared> read_declared(const json& bundle, const char* list, const std::string& where) {
  std::vector<Declared> result;
  for (const json& item : field<std::vector<json>>(bundle, list, where)) {
    Declared spec;
    spec.name = field<std::string>(item, "name", where);
    const auto dtype = field<std::string>(item, "dtype", where);
    spec.dtype = safetensors_dtype(dtype);
    if (spec.dtype.empty()) throw Failure("unsupported", fmt::format("{}: '{}' has dtype {}", where, spec.name, dtype));
    spec.shape = field<std::vector<std::int64_t>>(item, "shape", where);
    spec.keyword = item.value("keyword", false);
    result.push_back(std::move(spec));
  }
  return result;
}

// Whether an input has the declared shape, but for a batch that may vary.
bool fits(const Bundle& bundle, const Declared& input, const std::vector<std::int64_t>& shape) {
  if (!bundle.batches || shape.empty() || shape.size() != input.shape.size()) return shape == input.shape;
  return shape[0] >= bundle.batches->first && shape[0] <= bundle.batches->second &&
         std::equal(shape.begin() + 1, shape.end(), input.shape.begin() + 1);
}

SafeTensors open(const std::filesystem::path& path) {
  auto file = SafeTensors::map(path);
  if (!file) throw Failure("failed", file.error().what, file.error().hint);
  return *std::move(file);
}

}  // namespace

std::string safetensors_dtype(std::string_view torch_name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 13> names{{{"float32", "F32"},
                                                                                 {"float64", "F64"},
                                                                                 {"float16", "F16"},
                                                                                 {"bfloat16", "BF16"},
                                                                                 {"int64", "I64"},
                                                                                 {"int32", "I32"},
                                                                                 {"int16", "I16"},
                                                                                 {"int8", "I8"},
                                                                                 {"uint64", "U64"},
                                                                                 {"uint32", "U32"},
                                                                                 {"uint16", "U16"},
                                                                                 {"uint8", "U8"},
                                                                                 {"bool", "BOOL"}}};
  for (const auto& [torch, ours] : names)
    if (torch == torch_name) return std::string(ours);
  return {};
}

Case read_case(const json& object) {
  const std::string where = "the request's case";
  if (!object.is_object()) throw Failure("bad_request", where + " is not an object");
  Case result;
  result.model = field<std::string>(object, "model", where);
  result.mode = field<std::string>(object, "mode", where);
  result.precision = field<std::string>(object, "precision", where);
  result.device = field<std::string>(object, "device", where);
  result.threads = field<int>(object, "threads", where);
  result.deep = object.value("deep", false);
  result.json = object;
  if (result.threads < 1)
    throw Failure("bad_request", fmt::format("{}: threads is {}, at least 1 is needed", where, result.threads));
  return result;
}

Bundle read_bundle(const std::filesystem::path& folder) {
  const auto path = folder / "bundle.json";
  std::ifstream stream(path);
  if (!stream)
    throw Failure("failed", path.string() + " cannot be read", "the driver makes it with `python -m capture`");
  Bundle result;
  result.folder = folder;
  result.json = json::parse(stream, nullptr, false);
  if (!result.json.is_object())
    throw Failure("failed", path.string() + " is not a JSON object", "remove the folder; it is made again");
  try {
    result.inputs = read_declared(result.json, "inputs", path.string());
    result.outputs = read_declared(result.json, "outputs", path.string());
    if (result.json.contains("tied"))
      result.tied = field<std::map<std::string, std::string>>(result.json, "tied", path.string());
    const auto open = result.json.value("case", json::object()).value("dynamic", json());
    if (open.is_object())
      result.batches = {field<std::int64_t>(open, "low", path.string()),
                        field<std::int64_t>(open, "high", path.string())};
  } catch (const Failure& failure) {
    if (failure.code() != "bad_request") throw;
    throw Failure("failed", failure.what(),
                  "remove the folder; it is made again");  // the request was right, the file is not
  }
  return result;
}

SafeTensors read_weight_set(const Bundle& bundle, std::string_view set) {
  if (set.empty() || set.find('/') != std::string_view::npos)
    throw Failure("bad_request", fmt::format("'{}' is not the name of a weight set", set));
  const auto path = bundle.folder / "weights" / (std::string(set) + ".safetensors");
  if (!std::filesystem::exists(path))
    throw Failure("bad_request", fmt::format("no weight set '{}': {} does not exist", set, path.string()));
  return open(path);
}

HostTensor allocate(std::string dtype, std::vector<std::int64_t> shape) {
  HostTensor tensor;
  tensor.view.dtype = std::move(dtype);
  tensor.view.shape = std::move(shape);
  const auto needed = static_cast<std::size_t>(tensor.view.elements()) * element_bytes(tensor.view.dtype);
  const auto rounded = (needed + alignment_bytes) / alignment_bytes * alignment_bytes;
  void* memory = std::aligned_alloc(alignment_bytes, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  tensor.owner = std::shared_ptr<const void>(memory, [](const void* p) { std::free(const_cast<void*>(p)); });
  tensor.view.data = static_cast<const std::byte*>(memory);
  tensor.view.bytes = needed;
  return tensor;
}

HostTensor copy_of(const TensorView& view) {
  HostTensor copy = allocate(view.dtype, view.shape);
  std::memcpy(writable(copy), view.data, view.bytes);
  return copy;
}

std::byte* writable(HostTensor& tensor) {
  return const_cast<std::byte*>(tensor.view.data);
}

Ring read_inputs(const Bundle& bundle, const std::filesystem::path& path) {
  const SafeTensors file = open(path);
  Ring ring;
  for (std::size_t index = 0;; ++index) {
    std::vector<HostTensor> entry;
    for (const Declared& input : bundle.inputs) {
      const auto name = fmt::format("{}/{}", index, input.name);
      const TensorView* tensor = file.find(name);
      if (tensor == nullptr) {
        if (&input == &bundle.inputs.front())
          return ring.empty() ? throw Failure("failed", fmt::format("{} has no tensor '{}'", path.string(), name))
                              : ring;
        throw Failure("failed", fmt::format("{} has no tensor '{}'", path.string(), name));
      }
      if (tensor->dtype != input.dtype || !fits(bundle, input, tensor->shape))
        throw Failure("failed", fmt::format("{}: '{}' is {} [{}], the bundle declares {} [{}]", path.string(), name,
                                            tensor->dtype, fmt::join(tensor->shape, ", "), input.dtype,
                                            fmt::join(input.shape, ", ")));
      entry.push_back(copy_of(*tensor));
    }
    if (bundle.inputs.empty()) throw Failure("unsupported", "the bundle declares no inputs");
    ring.push_back(std::move(entry));
  }
}

std::vector<HostTensor> read_unseen(const Bundle& bundle, const std::filesystem::path& path,
                                    const std::vector<HostTensor>& like) {
  Ring unseen = read_inputs(bundle, path);
  const auto same_shape = [](const HostTensor& a, const HostTensor& b) { return a.view.shape == b.view.shape; };
  if (unseen.size() != 1 || !std::equal(unseen[0].begin(), unseen[0].end(), like.begin(), like.end(), same_shape))
    throw Failure("bad_request", fmt::format("{} is not one entry like those of the ring", path.string()),
                  "send 0/<input> of the ring's shapes");
  return std::move(unseen.front());
}

bool gives_loss(const Bundle& bundle) {
  return !bundle.outputs.empty() && bundle.outputs.front().shape.empty();
}

std::vector<HostTensor> read_labels(const Bundle& bundle, const std::filesystem::path& path, std::size_t count) {
  const SafeTensors file = open(path);
  const auto scores = bundle.outputs.empty() ? std::vector<std::int64_t>() : bundle.outputs.front().shape;
  if (scores.size() != 2)
    throw Failure("unsupported", fmt::format("the network's first output is [{}], training needs [batch, classes]",
                                             fmt::join(scores, ", ")));
  std::vector<HostTensor> result;
  for (std::size_t index = 0; index < count; ++index) {
    const auto name = fmt::format("{}/labels", index);
    const TensorView* tensor = file.find(name);
    if (tensor == nullptr)
      throw Failure("bad_request", fmt::format("{} has no tensor '{}'", path.string(), name),
                    fmt::format("one `<index>/labels` for each of the {} inputs", count));
    if (tensor->dtype != "I64" || tensor->shape.size() != 1 || tensor->shape[0] != scores[0])
      throw Failure("bad_request", fmt::format("{}: '{}' is {} [{}], needed is I64 [{}]", path.string(), name,
                                               tensor->dtype, fmt::join(tensor->shape, ", "), scores[0]));
    for (std::size_t i = 0; i < static_cast<std::size_t>(scores[0]); ++i)
      if (const double label = value_at(*tensor, i); label < 0 || label >= static_cast<double>(scores[1]))
        throw Failure("bad_request", fmt::format("{}: '{}' holds the label {}, the network's classes are 0 to {}",
                                                 path.string(), name, label, scores[1] - 1));
    result.push_back(copy_of(*tensor));
  }
  return result;
}

}  // namespace strata
