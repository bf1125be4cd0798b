// SPDX-License-Identifier: Apache-2.0
#include "generate/reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

#include "common/safetensors.hpp"

namespace strata::generate {
namespace fs = std::filesystem;
namespace {

// as src/proof has them
constexpr double strict = 8, least_envelope = 8 * 0x1p-24, gradient_floor = 0.01;
double least_envelope_in(std::string_view precision) {
  return precision.ends_with("bf16") ? 0x1p-9 : precision == "tf32" ? 0x1p-11 : least_envelope;
}

double relative_error(const TensorView& actual, const std::vector<double>& expected) {
  const auto got = to_doubles(actual);
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += (got[i] - expected[i]) * (got[i] - expected[i]);
    size += expected[i] * expected[i];
  }
  return size > 0 ? std::sqrt(difference / size) : 0;
}

tl::unexpected<Error> lacks(const SafeTensors& file, const std::string& name) {
  return fail(fmt::format("{} lacks '{}'", file.where(), name), "remove the bundle's folder; it is made again");
}

// The largest error of the legitimate runs of input 0.
double envelope(const SafeTensors& runs, const std::string& output, const std::vector<double>& expected, double least) {
  double worst = least;
  for (const auto& name : runs.names()) {
    const auto slash = name.find('/');
    if (slash == std::string::npos || name.substr(slash) != "/0/" + output) continue;
    if (const auto& run = *runs.find(name); static_cast<std::size_t>(run.elements()) == expected.size())
      worst = std::max(worst, relative_error(run, expected));
  }
  return worst;
}

}  // namespace

namespace {

using Tensors = std::vector<std::pair<std::string, TensorView>>;

Result<void> add_inputs(Tensors& tensors, const graph::Graph& graph, const SafeTensors& inputs) {
  for (const auto& input : graph.inputs) {
    const auto* tensor = inputs.find("0/" + input.name);
    if (tensor == nullptr) return lacks(inputs, "0/" + input.name);
    tensors.emplace_back("input/" + input.name, *tensor);
  }
  return {};
}

// Numbers that a file's tensors are views of, which must stay.
class OwnedNumbers {
 public:
  void add(Tensors& tensors, const std::string& name, std::vector<double> values, std::vector<std::int64_t> shape) {
    const auto& owned = numbers_.emplace_back(std::make_unique<std::vector<double>>(std::move(values)));
    tensors.emplace_back(name, TensorView{.dtype = "F64",
                                          .shape = std::move(shape),
                                          .data = reinterpret_cast<const std::byte*>(owned->data()),
                                          .bytes = owned->size() * sizeof(double)});
  }

 private:
  std::vector<std::unique_ptr<std::vector<double>>> numbers_;
};

}  // namespace

Result<void> write_reference(const fs::path& file, const graph::Graph& graph, const fs::path& bundle,
                             const std::string& precision) {
  const auto inputs = STRATA_TRY(SafeTensors::open(bundle / "inputs.safetensors"));
  const auto reference = STRATA_TRY(SafeTensors::open(bundle / "reference" / "timed.safetensors"));
  const auto mode = precision == "fp32" ? "" : "." + precision;
  const auto runs =
      STRATA_TRY(SafeTensors::open(bundle / "reference" / fmt::format("timed{}.envelope.safetensors", mode)));
  Tensors tensors;
  STRATA_TRY(add_inputs(tensors, graph, inputs));
  OwnedNumbers owned;
  for (const auto& output : graph.outputs) {
    const auto* tensor = reference.find("f64/0/" + output.name);
    if (tensor == nullptr) return lacks(reference, "f64/0/" + output.name);
    const auto expected = to_doubles(*tensor);
    owned.add(tensors, "output/" + output.name, expected, tensor->shape);
    owned.add(tensors, "bound/" + output.name,
              {strict * envelope(runs, output.name, expected, least_envelope_in(precision))}, {});
  }
  return write_safetensors(file, tensors);
}

namespace {

// A file of reference/ that tells of weight sets by name.
Result<nlohmann::json> timed_of(const fs::path& file) {
  std::ifstream in(file);
  auto about = nlohmann::json::parse(in, nullptr, false);
  if (!about.is_object() || !about.contains("timed"))
    return fail(fmt::format("cannot read {}", file.string()), "remove the bundle's folder; it is made again");
  return std::move(about["timed"]);
}

}  // namespace

Result<void> write_training_reference(const fs::path& file, const graph::Graph& graph, const fs::path& bundle,
                                      const std::string& precision) {
  const auto inputs = SafeTensors::open(bundle / "inputs.safetensors"),
             reference = SafeTensors::open(bundle / "reference" / "timed.train.safetensors");
  for (const auto* operand : {&inputs, &reference})
    if (!*operand) return tl::unexpected(operand->error());
  const auto timed = timed_of(bundle / "reference" / "train.json");
  if (!timed) return tl::unexpected(timed.error());
  const auto in_mode = STRATA_TRY(
      precision == "fp32" ? timed : timed_of(bundle / "reference" / fmt::format("train.{}.json", precision)));
  const auto& runs = in_mode.at("envelope");
  Tensors tensors;
  STRATA_TRY(add_inputs(tensors, graph, *inputs));
  std::optional<SafeTensors> labels;  // which a loss that the network gives has not
  if (std::filesystem::exists(bundle / "labels.safetensors")) {
    labels = STRATA_TRY(SafeTensors::open(bundle / "labels.safetensors"));
    const auto* label = labels->find("0/labels");
    if (label == nullptr) return lacks(*labels, "0/labels");
    tensors.emplace_back("labels", *label);
  }
  OwnedNumbers owned;
  const auto add = [&](const std::string& name, double of_runs, double floor) -> Result<void> {
    const auto* tensor = reference->find("0/" + name);
    if (tensor == nullptr) return lacks(*reference, "0/" + name);
    const auto expected = to_doubles(*tensor);
    double size = 0;
    for (const double element : expected) size += element * element;
    const double scale = std::sqrt(size) + floor * std::sqrt(static_cast<double>(expected.size()));
    owned.add(tensors, "output/" + name, expected, tensor->shape);
    owned.add(tensors, "bound/" + name, {strict * std::max(of_runs, least_envelope_in(precision)) * scale}, {});
    return {};
  };
  STRATA_TRY(add("loss", runs.value("loss", 0.0), 0));
  for (const auto& [parameter, of_runs] : runs["grad"].items())
    STRATA_TRY(add("grad:" + parameter, of_runs.get<double>(), gradient_floor * timed->value("grad_floor", 0.0)));
  return write_safetensors(file, tensors);
}

}  // namespace strata::generate
