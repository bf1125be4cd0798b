// SPDX-License-Identifier: Apache-2.0
#include "proof/causes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "proof/difference.hpp"

namespace strata::proof {

namespace {

using Kind = OutputVerdict::Kind;

struct Failing {
  const Reference& reference;
  std::string_view set;
  int index;
  const OutputSpec& output;
  const TensorView& actual;

  const TensorView& expected() const { return *reference.expected(set, index, output.name); }
  // Relative error against any reference tensor; integer outputs count as far unless all bytes agree.
  double distance(const TensorView& a, const TensorView& b) const {
    if (!is_floating(output.dtype)) return same_bytes(a, b) ? 0 : 1;
    const Difference d = difference(a, b, reference.floor_scale(set));
    return d.non_finite ? 1e300 : d.error;
  }
  double bound(std::string_view of_set) const { return strict_limit * reference.envelope(of_set, output.name).error; }
  // Much nearer to `other` than to what was wanted: within the bound, or ten times nearer.
  bool resembles(const TensorView& other, std::string_view of_set) const {
    const double here = distance(actual, expected()), there = distance(actual, other);
    return there <= bound(of_set) || there < 0.1 * here;
  }
};

Cause not_finite(const Failing& f) {
  std::size_t more = 0, fewer = 0, zero = 0;  // NaN and Inf that only the level has, and only the reference
  const auto count = static_cast<std::size_t>(f.actual.elements());
  in_chunks(f.actual, f.expected(), [&](std::size_t, std::span<const double> a, std::span<const double> w) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      more += !std::isfinite(a[i]) && std::isfinite(w[i]);
      fewer += std::isfinite(a[i]) && !std::isfinite(w[i]);
      zero += a[i] == 0;
    }
  });
  if (more > 0)
    return {Kind::unequal, fmt::format("{} of {} values are NaN or Inf and should not be", more, count),
            "outputs hold NaN or Inf"};
  if (fewer > 0)
    return {Kind::unequal,
            fmt::format("{} of {} values are numbers where the reference has NaN or Inf: an operation hides it (a "
                        "maximum that takes the other operand, a product that is left out)",
                        fewer, count),
            "NaN or Inf is lost"};
  if (zero == count && count > 0 && f.distance(f.actual, f.expected()) > f.bound(f.set))
    return {Kind::unequal, "every value is 0: nothing was computed or the result was not copied",
            "every output value is 0"};
  return {};
}

Cause flushed_subnormals(const Failing& f) {
  const TensorView* flushed = f.reference.flushed(f.set, f.index, f.output.name);
  if (!flushed || !f.resembles(*flushed, f.set)) return {};
  return {Kind::unequal,
          "the level takes subnormal numbers (smaller than 1.2e-38) for zero, as eager does after "
          "torch.set_flush_denormal(True): scale the weights and inputs that hold such numbers, or set these to 0 "
          "there, and all levels agree",
          "subnormal numbers are flushed to zero"};
}

Cause other_input(const Failing& f) {
  for (int other : f.reference.indices(f.set)) {
    if (other == f.index) continue;
    if (f.resembles(*f.reference.expected(f.set, other, f.output.name), f.set))
      return {Kind::mistrusted,
              fmt::format("the output follows input {} though input {} was given: a buffer is not refilled", other,
                          f.index),
              "output follows another input: stale buffer"};
  }
  return {};
}

Cause constant_output(const Failing& f, const SafeTensors& all, std::span<const int> indices) {
  for (int other : indices) {
    if (other == f.index) continue;
    const TensorView* theirs = all.find(fmt::format("{}/{}", other, f.output.name));
    const TensorView* expected = f.reference.expected(f.set, other, f.output.name);
    if (theirs && expected && same_bytes(f.actual, *theirs) && f.distance(*expected, f.expected()) > 2 * f.bound(f.set))
      return {Kind::mistrusted,
              fmt::format("the outputs of inputs {} and {} are the same bytes though they should differ: the result "
                          "does not depend on the input",
                          f.index, other),
              "outputs do not depend on their inputs"};
  }
  return {};
}

Cause other_weights(const Failing& f) {
  for (const std::string& set : f.reference.sets()) {
    if (set == f.set) continue;
    const TensorView* other = f.reference.expected(set, f.index, f.output.name);
    if (other && f.resembles(*other, set))
      return {Kind::unequal,
              fmt::format(
                  "the outputs of {} weights equal those of {} weights: weights are baked in or were not loaded again",
                  f.set, set),
              "weights are baked in or not loaded"};
  }
  return {};
}

Cause batch_elements(const Failing& f) {
  const TensorView& expected = f.expected();
  const std::int64_t rows = expected.shape.size() > 1 ? expected.shape[0] : 0;
  if (rows < 2 || rows > 64) return {};  // beyond 64 the search costs more than the name is worth
  std::vector<std::int64_t> wrong;
  for (std::int64_t row = 0; row < rows; ++row)
    if (f.distance(row_of(f.actual, row), row_of(expected, row)) > 2 * f.bound(f.set)) wrong.push_back(row);
  for (std::int64_t row : wrong)
    for (std::int64_t other = 0; other < rows; ++other) {
      const double here = f.distance(row_of(f.actual, row), row_of(expected, row));
      const double there = f.distance(row_of(f.actual, row), row_of(expected, other));
      if (other != row && (there <= f.bound(f.set) || there < 0.1 * here))
        return {
            Kind::unequal,
            fmt::format("the output of batch element {} is that of element {}: the batch is mixed up or computed once",
                        row, other),
            "batch elements are mixed up"};
    }
  if (!wrong.empty() && wrong.size() < static_cast<std::size_t>(rows))
    return {Kind::unequal,
            fmt::format("{} of {} batch elements are wrong, the first is {}", wrong.size(), rows, wrong.front()),
            "some batch elements are wrong"};
  return {};
}

// Float32 values whose lower 16 bits are all zero were rounded to bfloat16.
Cause reduced_precision(const Failing& f) {
  if (f.actual.dtype != "F32" || f.reference.precision() == "bf16" || f.reference.precision() == "amp-bf16") return {};
  const auto count = static_cast<std::size_t>(f.actual.elements());
  std::size_t rounded = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, f.actual.data + 4 * i, 4);
    rounded += (bits & 0xffffu) == 0;
  }
  if (count < 8 || rounded < count) return {};
  return {Kind::unequal, "every value is exactly a bfloat16 number: the level computes in reduced precision",
          "computes in reduced precision (bfloat16)"};
}

Cause wrong_scale(const Failing& f) {
  if (!is_floating(f.output.dtype)) return {};
  double cross = 0, squares = 0, actual_squares = 0;
  in_chunks(f.actual, f.expected(), [&](std::size_t, std::span<const double> a, std::span<const double> w) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      cross += a[i] * w[i];
      squares += w[i] * w[i];
      actual_squares += a[i] * a[i];
    }
  });
  if (!(squares > 0) || f.actual.elements() < 3) return {};
  const double factor = cross / squares;
  const double left = std::sqrt(std::max(0.0, actual_squares - cross * factor) / squares);
  if (std::abs(factor - 1) < 0.01 || left > 1e-3) return {};
  return {
      Kind::unequal,
      fmt::format("the output is {:.4g} times the reference: a scale or a mean is missing or applied twice", factor),
      "outputs are scaled by a constant"};
}

}  // namespace

Cause likely_cause(const Reference& reference, std::string_view set, int index, const OutputSpec& output,
                   const TensorView& actual, const SafeTensors& all, std::span<const int> indices) {
  const Failing f{.reference = reference, .set = set, .index = index, .output = output, .actual = actual};
  Cause cause = flushed_subnormals(f);
  if (cause.sentence.empty()) cause = not_finite(f);
  if (cause.sentence.empty()) cause = other_input(f);
  if (cause.sentence.empty()) cause = constant_output(f, all, indices);
  if (cause.sentence.empty()) cause = other_weights(f);
  if (cause.sentence.empty()) cause = batch_elements(f);
  if (cause.sentence.empty()) cause = reduced_precision(f);
  if (cause.sentence.empty()) cause = wrong_scale(f);
  return cause;
}

}  // namespace strata::proof
