// SPDX-License-Identifier: Apache-2.0
#include "proof/outputs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "common/extents.hpp"
#include "proof/causes.hpp"
#include "proof/difference.hpp"

namespace strata::proof {

namespace {

using Kind = OutputVerdict::Kind;

// What one output of one input was found to be.
struct Finding {
  Kind kind = Kind::equal;
  double ratio = 0;  // of the envelope: the larger of the tensor's and half the largest element's
  std::string sentence, brief;
};

Finding unequal(std::string sentence, std::string brief) {
  return {.kind = Kind::unequal, .ratio = 0, .sentence = std::move(sentence), .brief = std::move(brief)};
}

class OutputCheck {
 public:
  OutputCheck(const Reference& reference, std::string_view set, Tolerance tolerance)
      : reference_(reference), set_(set), tolerance_(tolerance) {}

  Finding judge(int index, const OutputSpec& output, const TensorView& actual) const {
    const TensorView& expected = *reference_.expected(set_, index, output.name);
    if (actual.dtype != output.dtype)
      return unequal(fmt::format("has type {}, where {} is declared", actual.dtype, output.dtype),
                     "output has another type");
    if (actual.shape != output.shape)
      return unequal(
          fmt::format("has shape {}, where {} is declared", extents(actual.shape), fmt::join(output.shape, "x")),
          "output has another shape");
    if (!is_floating(output.dtype)) return judge_integers(index, output, actual, expected);
    Finding result = judge_floats(index, output, actual, expected);
    if (result.kind != Kind::unequal && !output.tap && output.shape.size() == 2)
      if (Finding classes = judge_arg_max(index, output, actual, expected); classes.kind == Kind::unequal)
        return classes;
    return result;
  }

 private:
  double limit() const { return tolerance_.reassociates ? reassociated_limit : strict_limit; }

  // E0 and M0, widened by a random level's own spread, which may not buy more than the strict bound.
  Envelope envelope(const OutputSpec& output) const {
    Envelope out = reference_.envelope(set_, output.name);
    out.largest += std::min(tolerance_.own_spread, strict_limit * out.largest);
    out.error += std::min(tolerance_.own_spread, strict_limit * out.error);
    return out;
  }

  Finding judge_floats(int index, const OutputSpec& output, const TensorView& actual,
                       const TensorView& expected) const {
    const Difference d = difference(actual, expected, reference_.floor_scale(set_));
    if (d.non_finite > 0)
      if (const std::size_t places = strange_non_finite(index, output, actual, expected); places > 0)
        return unequal(
            fmt::format(
                "has NaN or Inf at {} places where the reference has not, or the other way round (first at element {})",
                places, d.first_non_finite),
            "NaN or Inf where the reference differs");
    const Envelope known = envelope(output);
    const double tensor = d.error / known.error, element = d.largest / known.largest;
    Finding out;
    out.ratio = std::max(tensor, element / element_factor);
    if (out.ratio <= strict_limit) return out;
    if (out.ratio <= limit()) {
      out.kind = Kind::equal_looser;
      return out;
    }
    out.kind = Kind::unequal;
    const bool by_element = tensor <= limit();
    out.sentence =
        by_element
            ? fmt::format(
                  "has one element off by {:.2g} of the largest, {:.3g} times the envelope of legitimate {} runs "
                  "(allowed {:.0f})",
                  d.largest, element, reference_.shown_precision(), element_factor * limit())
            : fmt::format(
                  "is off by {:.2g} (relative), {:.3g} times the envelope of legitimate {} runs (allowed {:.0f})",
                  d.error, tensor, reference_.shown_precision(), limit());
    const double times = by_element ? element : tensor;
    out.brief = times >= 1000 && times < 1e6 ? fmt::format("outputs differ, {:.0f} times the envelope", times)
                                             : fmt::format("outputs differ, {:.3g} times the envelope", times);
    return out;
  }

  // Places where the finite and the non-finite disagree and no legitimate float32 run agrees with the level either.
  std::size_t strange_non_finite(int index, const OutputSpec& output, const TensorView& actual,
                                 const TensorView& expected) const {
    const auto runs = reference_.legitimate(set_, index, output.name);
    const auto alike = [](double a, double b) {
      return (std::isfinite(a) && std::isfinite(b)) || (std::isnan(a) && std::isnan(b)) || a == b;
    };
    std::size_t places = 0;
    const auto count = static_cast<std::size_t>(expected.elements());
    for (std::size_t i = 0; i < count; ++i) {
      const double a = value_at(actual, i);
      if (alike(a, value_at(expected, i))) continue;
      places +=
          std::none_of(runs.begin(), runs.end(), [&](const TensorView* run) { return alike(a, value_at(*run, i)); });
    }
    return places;
  }

  // Rows of classes: the winner may only change where float64's own margin is within the bound.
  Finding judge_arg_max(int index, const OutputSpec& output, const TensorView& actual,
                        const TensorView& expected) const {
    const auto columns = static_cast<std::size_t>(output.shape[1]);
    if (columns < 2) return {};
    const double allowed = limit() * envelope(output).error * magnitude_of(index, output);
    std::vector<double> a(columns), w(columns);
    for (std::int64_t row = 0; row < output.shape[0]; ++row) {
      read_doubles(actual, static_cast<std::size_t>(row) * columns, a);
      read_doubles(expected, static_cast<std::size_t>(row) * columns, w);
      const auto got = static_cast<std::size_t>(std::max_element(a.begin(), a.end()) - a.begin());
      const auto top = static_cast<std::size_t>(std::max_element(w.begin(), w.end()) - w.begin());
      if (got != top && w[top] - w[got] > allowed)
        return unequal(
            fmt::format("says class {} in row {} where the reference says {} by a clear margin", got, row, top),
            "another class wins");
    }
    return {};
  }

  Finding judge_integers(int index, const OutputSpec& output, const TensorView& actual,
                         const TensorView& expected) const {
    const auto runs = reference_.legitimate(set_, index, output.name);
    std::size_t wrong = 0, first = 0;
    in_chunks(actual, expected, [&](std::size_t start, std::span<const double> a, std::span<const double> w) {
      for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i] == w[i] || std::any_of(runs.begin(), runs.end(),
                                        [&](const TensorView* run) { return value_at(*run, start + i) != w[i]; }))
          continue;
        if (is_a_tie(index, output, start + i, a[i], w[i])) continue;
        if (wrong++ == 0) first = start + i;
      }
    });
    if (wrong == 0) return {};
    return unequal(fmt::format("has {} of {} whole numbers wrong, the first at element {}: {} where {} is right", wrong,
                               expected.elements(), first, value_at(actual, first), value_at(expected, first)),
                   "whole-number outputs differ");
  }

  // An integer output that is the arg-max of a floating one (over the dimension it lacks) may differ where the margin
  // is small.
  bool is_a_tie(int index, const OutputSpec& output, std::size_t element, double got, double right) const {
    for (const OutputSpec& scores : reference_.outputs()) {
      if (scores.tap || !is_floating(scores.dtype) || scores.shape.size() != output.shape.size() + 1) continue;
      for (std::size_t axis = 0; axis < scores.shape.size(); ++axis) {
        std::vector<std::int64_t> rest = scores.shape;
        rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(axis));
        const std::int64_t classes = scores.shape[axis];
        if (rest != output.shape || got < 0 || got >= static_cast<double>(classes)) continue;
        std::size_t inner = 1;
        for (std::size_t i = axis + 1; i < scores.shape.size(); ++i) inner *= static_cast<std::size_t>(scores.shape[i]);
        const std::size_t base = element / inner * inner * static_cast<std::size_t>(classes) + element % inner;
        const TensorView& values = *reference_.expected(set_, index, scores.name);
        const auto score = [&](double label) {
          return value_at(values, base + static_cast<std::size_t>(label) * inner);
        };
        double top = score(0);
        for (std::int64_t label = 1; label < classes; ++label) top = std::max(top, score(static_cast<double>(label)));
        if (score(right) == top && top - score(got) <= limit() * envelope(scores).error * magnitude_of(index, scores))
          return true;
      }
    }
    return false;
  }

  double magnitude_of(int index, const OutputSpec& output) const {
    const auto [known, added] = magnitudes_.try_emplace({index, output.name}, 0.0);
    const TensorView& values = *reference_.expected(set_, index, output.name);
    if (added) known->second = difference(values, values, 0).magnitude;
    return known->second;
  }

  const Reference& reference_;
  std::string_view set_;
  Tolerance tolerance_;
  mutable std::map<std::pair<int, std::string>, double> magnitudes_;
};

// At most 4,096 elements of both.
OutputVerdict::Sample sample_of(std::string place, const TensorView& actual, const TensorView& expected) {
  OutputVerdict::Sample out{std::move(place), {}, {}};
  const auto count = static_cast<std::size_t>(expected.elements());
  for (std::size_t i = 0, step = count / 4096 + 1; i < count; i += step) {
    out.answer.push_back(value_at(actual, i));
    out.expected.push_back(value_at(expected, i));
  }
  return out;
}

// A tensor in the file that belongs to no asked input and declared output; empty: none.
std::string unexpected_tensor(const Reference& reference, const SafeTensors& actual, std::span<const int> indices) {
  std::set<std::string, std::less<>> known;
  for (int index : indices)
    for (const OutputSpec& output : reference.outputs()) known.insert(fmt::format("{}/{}", index, output.name));
  for (const std::string& name : actual.names())
    if (!known.contains(name) && name.find("/tap:") == name.npos)
      return name.size() > 200 ? "(a name of " + std::to_string(name.size()) + " bytes)" : name;
  return {};
}

// The first module, in order of execution, whose output differs; empty: no tap does.
std::string first_differing_tap(const Reference& reference, std::string_view set, const SafeTensors& actual,
                                std::span<const int> indices, const OutputCheck& judge) {
  for (const OutputSpec& output : reference.outputs()) {
    if (!output.tap) continue;
    for (int index : indices) {
      const TensorView* tensor = actual.find(fmt::format("{}/{}", index, output.name));
      if (!tensor || !reference.expected(set, index, output.name)) continue;
      if (judge.judge(index, output, *tensor).kind == Kind::unequal) return output.name.substr(4);
    }
  }
  return {};
}

}  // namespace

std::string_view to_string(OutputVerdict::Kind kind) {
  switch (kind) {
    case Kind::equal:
      return "equal";
    case Kind::equal_looser:
      return "equal_looser";
    case Kind::mistrusted:
      return "mistrusted";
    case Kind::unequal:
      break;
  }
  return "unequal";
}

OutputVerdict not_equal(std::string reason, std::string brief, std::string where) {
  OutputVerdict out;
  out.kind = OutputVerdict::Kind::unequal;
  out.reason = std::move(reason);
  out.reason_short = std::move(brief);
  out.first_difference = std::move(where);
  return out;
}

OutputVerdict check_outputs(const Reference& reference, std::string_view set, const SafeTensors& actual,
                            std::span<const int> indices, Tolerance tolerance) {
  if (!reference.has_set(set))
    return not_equal(fmt::format("there is no reference for weight set '{}'", set), "no reference to compare with");
  if (indices.empty()) return not_equal("no output was asked for, so nothing is proven", "no output was checked");
  const OutputCheck judge(reference, set, tolerance);
  OutputVerdict out;
  out.follows_inputs = true;
  for (int index : indices) {
    for (const OutputSpec& output : reference.outputs()) {
      if (output.tap) continue;
      if (!reference.expected(set, index, output.name))
        return not_equal(fmt::format("there is no reference for input {} under {} weights", index, set),
                         "no reference to compare with");
      const TensorView* tensor = actual.find(fmt::format("{}/{}", index, output.name));
      if (!tensor)
        return not_equal(fmt::format("output '{}' of input {} is missing", output.name, index), "an output is missing",
                         output.name);
      const Finding finding = judge.judge(index, output, *tensor);
      out.worst_ratio = std::max(out.worst_ratio, finding.ratio);
      out.kind = std::max(out.kind, finding.kind);
      if (finding.kind != Kind::unequal) continue;
      out.follows_inputs = false;
      Cause cause;
      if (tensor->dtype == output.dtype && tensor->shape == output.shape)
        cause = likely_cause(reference, set, index, output, *tensor, actual, indices);
      if (cause.sentence.empty() && finding.ratio > 0)
        out.sample = sample_of(fmt::format("{}/{}/{}", set, index, output.name), *tensor,
                               *reference.expected(set, index, output.name));
      out.kind = cause.sentence.empty() ? Kind::unequal : cause.kind;
      out.reason = fmt::format("output '{}' of input {} {}", output.name, index, finding.sentence);
      if (!cause.sentence.empty()) out.reason += fmt::format(": {}", cause.sentence);
      out.reason_short = cause.brief.empty() ? finding.brief : cause.brief;
      const std::string tap = first_differing_tap(reference, set, actual, indices, judge);
      out.first_difference = tap.empty() ? output.name : tap;
      if (!tap.empty()) out.reason += fmt::format("; the first layer that differs is {}", tap);
      return out;
    }
    out.follows_inputs = out.follows_inputs && reference.distinct(set, index);
  }
  if (const std::string extra = unexpected_tensor(reference, actual, indices); !extra.empty())
    return not_equal(fmt::format("output '{}' was not asked for", extra), "an output nobody asked for", extra);
  return out;
}

double spread_of(const Reference& reference, std::span<const SafeTensors> runs, std::span<const int> indices) {
  double spread = 0;
  for (std::size_t run = 1; run < runs.size(); ++run)
    for (int index : indices)
      for (const OutputSpec& output : reference.outputs()) {
        const std::string name = fmt::format("{}/{}", index, output.name);
        const TensorView* first = runs[0].find(name);
        const TensorView* again = runs[run].find(name);
        if (output.tap || !first || !again || !is_floating(output.dtype) || again->shape != first->shape) continue;
        spread = std::max(spread, difference(*again, *first, 0).error);
      }
  return spread;
}

}  // namespace strata::proof
