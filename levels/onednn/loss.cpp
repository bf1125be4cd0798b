// SPDX-License-Identifier: Apache-2.0
// The negative log-likelihood of labels, a loop over the batch, since oneDNN has no call that reads labels.
#include <fmt/format.h>

#include <cstring>
#include <stdexcept>

#include "operations.hpp"

namespace strata::onednn {
namespace {

struct Labels {
  memory labels;
  std::int64_t rows, classes;

  // The class of a row; oneDNN's handle has no alignment to rely on.
  std::int64_t at(std::int64_t row) const {
    std::int64_t label = 0;
    std::memcpy(&label, static_cast<const std::byte*>(labels.get_data_handle()) + row * 8, sizeof label);
    if (label < 0 || label >= classes)
      throw std::out_of_range(fmt::format("the label {} of {} classes", label, classes));
    return label;
  }
};

Labels labels_of(Builder& b, const Dims& scores) {
  if (scores.size() != 2) throw Unsupported("a loss of scores that are not [batch, classes]");
  if (b.has("weight") || b.integer("reduction") != 1) throw Unsupported("a loss with weights, or not the mean");
  return {b.handle(b.rows("target")), scores[0], scores[1]};
}

void forward(Builder& b) {
  const Tensor x = b.plain(b.tensor("self"));
  const Labels labels = labels_of(b, x.dims());
  const Tensor loss = b.result(row_major({1})), total = b.result(row_major({1}), 1);
  const auto scores = b.handle(x), into = b.handle(loss), weight = b.handle(total);
  b.own("a sum", [=] {
    const auto* score = static_cast<const float*>(scores.get_data_handle());
    double sum = 0;
    for (std::int64_t row = 0; row < labels.rows; ++row) sum -= score[row * labels.classes + labels.at(row)];
    *static_cast<float*>(into.get_data_handle()) = static_cast<float>(sum / static_cast<double>(labels.rows));
    *static_cast<float*>(weight.get_data_handle()) = static_cast<float>(labels.rows);
  });
}

void backward(Builder& b) {
  const Dims dims = b.shape();
  const Labels labels = labels_of(b, dims);
  const Tensor to = b.result(row_major(dims));
  const auto loss_gradient = b.handle(b.plain(b.tensor("grad_output"))),
             weight = b.handle(b.plain(b.tensor("total_weight"))), into = b.handle(to);
  b.own("one element a row", [=] {
    auto* target = static_cast<float*>(into.get_data_handle());
    const float share = -*static_cast<const float*>(loss_gradient.get_data_handle()) /
                        *static_cast<const float*>(weight.get_data_handle());
    std::memset(target, 0, static_cast<std::size_t>(labels.rows * labels.classes) * sizeof(float));
    for (std::int64_t row = 0; row < labels.rows; ++row) target[row * labels.classes + labels.at(row)] = share;
  });
}

}  // namespace

void add_losses(Operations& table) {
  table["nll_loss_forward"] = forward;
  table["nll_loss_backward"] = backward;
}

}  // namespace strata::onednn
