// SPDX-License-Identifier: Apache-2.0
// The loss of labels and dropout, by the kit's own kernels.
#include <stdexcept>

#include "kit_cuda/internals.hpp"
#include "kit_cuda/kernels/softmax.hpp"

namespace kit {
namespace {

void take_labels(Internals& in, const Shape& scores) {
  if (scores.rank != 2) throw std::logic_error("scores that are not [batch, classes]");
  in.labels = static_cast<int>(scores[0]);
  in.classes = static_cast<int>(scores[1]);
}

const std::int64_t* labels_of(const Internals& in) {
  return reinterpret_cast<const std::int64_t*>(in.label_memory.get());
}

// A byte for each element, in the order of a tensor.
template <class Byte>
device::Strided<Byte> bytes_like(const Internals& in, const Tensor& bytes, const Tensor& like) {
  return {reinterpret_cast<Byte*>(in.address(bytes)), view_of(like)};
}

}  // namespace

void negative_log_likelihood(Program& program, const Scores& how) {
  Internals& in = program.internals();
  take_labels(in, how.source.shape);
  // labels are checked before they are sent, so that nobody reads where a fault was
  in.add("loss", [&in, how, fault = in.temporary_bytes(sizeof(device::Index))](Stream on) {
    device::likelihood(on, in.source(how.source), labels_of(in), in.floats_to(how.result), nullptr,
                       reinterpret_cast<device::Index*>(in.address(fault)));
  });
}

void negative_log_likelihood_backward(Program& program, const Scores& how) {
  Internals& in = program.internals();
  take_labels(in, how.source.shape);
  in.add("loss_backward", [&in, how](Stream on) {
    device::likelihood_backward(on, nullptr, labels_of(in), in.target(how.result.as(how.source.shape)));
  });
}

void dropout(Program& program, const Dropout& how) {
  Internals& in = program.internals();
  in.add("dropout", [&in, how, layer = static_cast<std::uint64_t>(in.training.dropouts++)](Stream on) {
    device::dropout(on, {in.dropout_state(), layer, how.p}, in.source(how.source),
                    bytes_like<std::uint8_t>(in, how.mask, how.result), in.target(how.result));
  });
}

void dropout_again(Program& program, const Dropout& how) {
  Internals& in = program.internals();
  in.add("dropout_again", [&in, how, scale = how.p == 1 ? 0.0F : static_cast<float>(1 / (1 - how.p))](Stream on) {
    device::dropout_backward(on, in.dropout_state(), in.source(how.source),
                             bytes_like<const std::uint8_t>(in, how.mask, how.source), scale, in.target(how.result));
  });
}

void dropout_backward(Program& program, const DropoutBackward& how) {
  Internals& in = program.internals();
  in.add("dropout_backward", [&in, how](Stream on) {
    device::dropout_backward(on, in.dropout_state(), in.source(how.gradient),
                             bytes_like<const std::uint8_t>(in, how.mask, how.gradient), how.scale,
                             in.target(how.result));
  });
}

}  // namespace kit
