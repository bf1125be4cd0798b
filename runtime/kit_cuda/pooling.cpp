// SPDX-License-Identifier: Apache-2.0
// Poolings and their gradients, by the kit's own kernels.
#include "kit_cuda/kernels/pooling.hpp"

#include "kit_cuda/internals.hpp"
#include "kit_cuda/kernels/spans.hpp"

namespace kit {
namespace {

device::Window window_of(const Pool& how) {
  device::Window window;
  for (int d = 0; d < how.kernel.rank; ++d) {
    window.kernel[d] = how.kernel[d];
    window.stride[d] = how.stride[d];
    window.dilation[d] = how.dilation[d];
    window.before[d] = how.before[d];
  }
  return window;
}

// Where the maxima are: a byte for each result, in its order.
template <class Byte>
device::Strided<Byte> places_of(const Internals& in, const Tensor& workspace, const Tensor& result) {
  return {reinterpret_cast<Byte*>(in.address(workspace)), view_of(result)};
}

void add_average(Program& program, const Pool& how, bool count_padding) {
  Internals& in = program.internals();
  const device::Averaging averaging{window_of(how), false, count_padding, 0};
  in.add("average_pool", [&in, how, averaging](Stream on) {
    device::average_pool(on, in.source(how.source), averaging, in.target(how.result));
  });
}

// Spans of all dimensions one behind the other, as a table.
device::SpanPool spans_of(const Internals& in, const UnevenPool& how, std::size_t table) {
  device::SpanPool pool;
  pool.dims = static_cast<int>(how.spans.size());
  pool.divisor = static_cast<double>(how.divisor);
  const auto* spans = reinterpret_cast<const device::Span*>(in.table_memory.get() + table);
  for (int d = 0; d < pool.dims; ++d) {
    pool.spans[d] = spans;
    spans += how.spans[static_cast<std::size_t>(d)].size();
  }
  return pool;
}

std::size_t table_of(Internals& in, const UnevenPool& how) {
  std::vector<device::Span> all;
  for (const auto& spans : how.spans)
    for (const auto& span : spans) all.push_back({span.begin, span.end, span.count});
  return in.table(all.data(), all.size() * sizeof(device::Span));
}

}  // namespace

void max_pool(Program& program, const Pool& how) {
  Internals& in = program.internals();
  in.add("max_pool", [&in, how](Stream on) {
    device::max_pool<std::int64_t>(on, in.source(how.source), window_of(how), in.target(how.result), {});
  });
}

void average_pool(Program& program, const Pool& how) {
  add_average(program, how, false);
}
void average_pool_with_padding(Program& program, const Pool& how) {
  add_average(program, how, true);
}

void max_pool_training(Program& program, const Pool& how, const Tensor& workspace) {
  Internals& in = program.internals();
  in.add("max_pool", [&in, how, workspace](Stream on) {
    device::max_pool(on, in.source(how.source), window_of(how), in.target(how.result),
                     places_of<std::uint8_t>(in, workspace, how.result));
  });
}

void pool_backward(Program& program, Pool::Kind kind, const Pool& how, const Tensor& workspace) {
  Internals& in = program.internals();
  if (kind == Pool::Kind::max)
    return in.add("max_pool_backward", [&in, how, workspace](Stream on) {
      device::max_pool_backward(on, in.source(how.source), places_of<const std::uint8_t>(in, workspace, how.source),
                                window_of(how), in.target(how.result));
    });
  const device::Averaging averaging{window_of(how), false, kind == Pool::Kind::average_with_padding, 0};
  in.add("average_pool_backward", [&in, how, averaging](Stream on) {
    device::average_pool_backward(on, in.source(how.source), averaging, in.target(how.result));
  });
}

void uneven_average_pool(Program& program, const UnevenPool& how) {
  Internals& in = program.internals();
  in.add("span_pool", [&in, how, table = table_of(in, how)](Stream on) {
    device::span_pool(on, in.source(how.source), spans_of(in, how, table), in.target(how.result));
  });
}
void uneven_average_pool_backward(Program& program, const UnevenPool& how) {
  Internals& in = program.internals();
  in.add("span_pool_backward", [&in, how, table = table_of(in, how)](Stream on) {
    device::span_pool_backward(on, in.source(how.source), spans_of(in, how, table), in.target(how.result));
  });
}

}  // namespace kit
