// SPDX-License-Identifier: Apache-2.0
#include "generate/reference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/safetensors.hpp"

namespace strata::generate {
namespace fs = std::filesystem;
namespace {

constexpr double strict = 8, least_envelope = 8 * 0x1p-24;  // as src/proof has them

double relative_error(const TensorView& actual, const std::vector<double>& wanted) {
  const auto got = to_doubles(actual);
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    difference += (got[i] - wanted[i]) * (got[i] - wanted[i]);
    size += wanted[i] * wanted[i];
  }
  return size > 0 ? std::sqrt(difference / size) : 0;
}

tl::unexpected<Error> lacks(const SafeTensors& file, const std::string& name) {
  return fail(fmt::format("{} lacks '{}'", file.where(), name), "remove the bundle's folder; it is made again");
}

// The largest error of the legitimate runs of input 0.
double envelope(const SafeTensors& runs, const std::string& output, const std::vector<double>& wanted) {
  double worst = least_envelope;
  for (const auto& name : runs.names()) {
    const auto slash = name.find('/');
    if (slash == std::string::npos || name.substr(slash) != "/0/" + output) continue;
    if (const auto& run = *runs.find(name); static_cast<std::size_t>(run.elements()) == wanted.size())
      worst = std::max(worst, relative_error(run, wanted));
  }
  return worst;
}

}  // namespace

Result<void> write_reference(const fs::path& file, const graph::Graph& graph, const fs::path& bundle) {
  const auto inputs = SafeTensors::open(bundle / "inputs.safetensors");
  if (!inputs) return tl::unexpected(inputs.error());
  const auto reference = SafeTensors::open(bundle / "reference" / "timed.safetensors");
  if (!reference) return tl::unexpected(reference.error());
  const auto runs = SafeTensors::open(bundle / "reference" / "timed.envelope.safetensors");
  if (!runs) return tl::unexpected(runs.error());
  std::vector<std::pair<std::string, TensorView>> tensors;
  for (const auto& one : graph.inputs) {
    const auto* found = inputs->find("0/" + one.name);
    if (found == nullptr) return lacks(*inputs, "0/" + one.name);
    tensors.emplace_back("input/" + one.name, *found);
  }
  std::vector<std::vector<double>> numbers;
  numbers.reserve(2 * graph.outputs.size());  // views into them must stay
  for (const auto& one : graph.outputs) {
    const auto* found = reference->find("f64/0/" + one.name);
    if (found == nullptr) return lacks(*reference, "f64/0/" + one.name);
    const auto add = [&](const std::string& name, std::vector<double> values, std::vector<std::int64_t> shape) {
      const auto& kept = numbers.emplace_back(std::move(values));
      tensors.emplace_back(name, TensorView{"F64", std::move(shape), reinterpret_cast<const std::byte*>(kept.data()),
                                            kept.size() * sizeof(double)});
    };
    add("output/" + one.name, to_doubles(*found), found->shape);
    add("bound/" + one.name, {strict * envelope(*runs, one.name, numbers.back())}, {});
  }
  return write_safetensors(file, tensors);
}

}  // namespace strata::generate
