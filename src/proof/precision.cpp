// SPDX-License-Identifier: Apache-2.0
#include "proof/precision.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "proof/certificate_builder.hpp"
#include "proof/difference.hpp"

namespace strata::proof {

namespace {

// The mean relative error of one output over the inputs; negative: it has no error to speak of.
double mean_error(const Reference& reference, std::string_view set, const OutputSpec& output, const SafeTensors& actual,
                  std::span<const int> indices) {
  if (output.tap || !is_floating(output.dtype) || indices.empty()) return -1;
  double sum = 0;
  for (int index : indices) {
    const TensorView* got = actual.find(fmt::format("{}/{}", index, output.name));
    const TensorView* expected = reference.expected(set, index, output.name);
    if (!got || !expected || got->shape != expected->shape) return -1;
    sum += difference(*got, *expected, reference.floor_scale(set)).error;
  }
  return sum / static_cast<double>(indices.size());
}

std::size_t winner(std::span<const double> row) {
  return static_cast<std::size_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

}  // namespace

PrecisionShare precision_share(const Reference& strict, const Reference& in_mode, std::string_view set,
                               const SafeTensors& actual, std::span<const int> indices) {
  PrecisionShare out;
  for (const OutputSpec& output : in_mode.outputs()) {
    const double error = mean_error(in_mode, set, output, actual, indices);
    const double eager = in_mode.least_error(set, output.name);
    if (error < 0 || eager <= 0) continue;
    const double contrast = eager / strict.envelope(set, output.name).error;
    out.contrast = std::max(out.contrast, contrast);
    if (contrast >= least_contrast) out.of_eager = std::max(out.of_eager, error / eager);
  }
  return out;
}

Accuracy accuracy_of(const Reference& reference, std::string_view set, const SafeTensors& actual,
                     std::span<const int> indices) {
  Accuracy out;
  for (const OutputSpec& output : reference.outputs())
    out.error = std::max(out.error, mean_error(reference, set, output, actual, indices));
  const OutputSpec& first = reference.outputs().front();
  if (first.tap || !is_floating(first.dtype) || first.shape.size() != 2 || first.shape[1] < 2) return out;
  const auto columns = static_cast<std::size_t>(first.shape[1]);
  std::vector<double> got(columns), expected(columns);
  for (int index : indices) {
    const TensorView* a = actual.find(fmt::format("{}/{}", index, first.name));
    const TensorView* w = reference.expected(set, index, first.name);
    if (!a || !w || a->shape != w->shape) continue;
    for (std::int64_t row = 0; row < first.shape[0]; ++row) {
      read_doubles(*a, static_cast<std::size_t>(row) * columns, got);
      read_doubles(*w, static_cast<std::size_t>(row) * columns, expected);
      ++out.answers;
      out.differ += winner(got) != winner(expected);
    }
  }
  return out;
}

void add_precision(Lines& lines, const std::string& precision, const std::optional<PrecisionShare>& share) {
  Line line{
      .check = "computes in " + precision, .how = "observed", .bound = fmt::format("at least {:.2g}", least_share)};
  if (!share) {
    line.detail = "the level's outputs were not taken";
    return lines.add(line);
  }
  if (share->contrast < least_contrast) {
    line.detail = fmt::format(
        "eager's own error in {} is only {:.2g} times its envelope in float32: the mode does not show in the outputs",
        precision, share->contrast);
    return lines.add(line);
  }
  line.value = fmt::format("{:.2g} of eager's least error in {}", share->of_eager, precision);
  line.result = "pass";
  if (share->of_eager >= least_share) return lines.add(line);
  line.detail = "its error is too small for the mode";
  lines.fail(line, OutputVerdict::Kind::mistrusted,
             fmt::format("the case is in {}, and the level's error is {:.2g} of the least that eager makes in it: it "
                         "computes in a higher precision",
                         precision, share->of_eager),
             fmt::format("does not compute in {}", precision));
}

}  // namespace strata::proof
