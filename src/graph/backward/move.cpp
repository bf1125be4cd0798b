// SPDX-License-Identifier: Apache-2.0
// Values put elsewhere: each place of the gradient goes back to where its value came from. Rows that a lookup takes
// more than once add up; what a padding or a written part has put in place of values has no gradient for them.
#include "graph/backward/rules.hpp"
#include "graph/operations/rules.hpp"

namespace strata::graph {
namespace {

// Of a table's rows, looked up by the int64 tensor `rows`, but for row `padding`, if that is none below 0.
void give_rows(Tape& tape, int table, int rows, std::int64_t padding = -1) {
  const Shape whole = tape.shape(table);
  std::int64_t width = 1;
  for (std::size_t i = 1; i < whole.size(); ++i) width *= whole[i];
  Shape gathered = tape.shape(rows);
  gathered.push_back(width);
  int gradient = tape.viewed(*tape.gradient(), gathered);
  if (padding >= 0) {
    const int left_out = tape.call("eq.Scalar", {tensor_argument("self", rows), plain_argument("other", padding)});
    Shape of_rows = tape.shape(rows);
    of_rows.push_back(1);
    gradient = tape.call("masked_fill.Scalar",
                         {tensor_argument("self", gradient), tensor_argument("mask", tape.viewed(left_out, of_rows)),
                          plain_argument("value", 0)});
  }
  const int sums = tape.call("embedding_dense_backward.default",
                             {tensor_argument("grad_output", gradient), tensor_argument("indices", rows),
                              plain_argument("num_weights", whole.front()), plain_argument("padding_idx", -1),
                              plain_argument("scale_grad_by_freq", false)});
  tape.give(table, tape.viewed(sums, whole));
}

void index(Tape& tape) {
  const auto lists = tape.node().tensors("indices");
  if (lists.size() != 1 || lists.front() < 0) return give_picked(tape);
  give_rows(tape, tape.node().tensor("self"), lists.front());
}

void embedding(Tape& tape) {
  const auto& node = tape.node();
  if (node.find("scale_grad_by_freq") != nullptr && node.flag("scale_grad_by_freq"))
    throw NoGradient("an embedding whose gradient is divided by how often a row is used");
  give_rows(tape, node.tensor("weight"), node.tensor("indices"), node.maybe_integer("padding_idx").value_or(-1));
}

void roll(Tape& tape) {
  auto back = tape.node().ints("shifts");
  for (auto& shift : back) shift = -shift;
  tape.give("self", tape.call("roll.default", {tensor_argument("self", *tape.gradient()),
                                               plain_argument("shifts", back), tape.same("dims")}));
}

int slice(Tape& tape, int value, Argument dim, Argument start, Argument end, Argument step) {
  return tape.call("slice.Tensor",
                   {tensor_argument("self", value), std::move(dim), std::move(start), std::move(end), std::move(step)});
}

void pad(Tape& tape) {
  const auto& node = tape.node();
  if (node.find("mode") != nullptr && node.text("mode") != "constant")
    throw NoGradient("padding in the mode " + node.text("mode"));
  const auto widths = node.ints("pad");
  const Shape whole = tape.shape(node.tensor("self"));
  int gradient = *tape.gradient();
  for (std::size_t i = 0; i < widths.size() / 2; ++i) {
    const auto before = widths[2 * i], after = widths[2 * i + 1];
    if (before < 0 || after < 0) throw NoGradient("negative padding");
    if (before == 0 && after == 0) continue;
    const auto axis = whole.size() - 1 - i;
    gradient =
        slice(tape, gradient, plain_argument("dim", static_cast<std::int64_t>(axis)), plain_argument("start", before),
              plain_argument("end", before + whole[axis]), plain_argument("step", 1));
  }
  tape.give("self", gradient);
}

void slice_scatter(Tape& tape) {
  const int gradient = *tape.gradient(), part = tape.node().tensor("src");
  if (tape.wants(part))
    tape.give(part, slice(tape, gradient, tape.same("dim"), tape.same("start"), tape.same("end"), tape.same("step")));
  if (!tape.wants("self")) return;
  const int zeros = tape.call("zeros_like.default", {tensor_argument("self", part), plain_argument("dtype", nullptr)});
  tape.give("self", tape.call("slice_scatter.default",
                              {tensor_argument("self", gradient), tensor_argument("src", zeros), tape.same("dim"),
                               tape.same("start"), tape.same("end"), tape.same("step")}));
}

// The copies of each element add up.
void repeat(Tape& tape) {
  const auto often = tape.node().ints("repeats");
  const int self = tape.node().tensor("self");
  Shape own = tape.shape(self), apart, copies;
  own.insert(own.begin(), often.size() - own.size(), 1);
  for (std::size_t d = 0; d < own.size(); ++d) {
    if (often[d] != 1) {
      copies.push_back(static_cast<std::int64_t>(apart.size()));
      apart.push_back(often[d]);
    }
    apart.push_back(own[d]);
  }
  int gradient = *tape.gradient();
  if (!copies.empty())
    gradient = tape.call("sum.dim_IntList",
                         {tensor_argument("self", tape.viewed(gradient, apart)), plain_argument("dim", copies),
                          plain_argument("keepdim", false), plain_argument("dtype", nullptr)});
  tape.give(self, tape.viewed(gradient, tape.shape(self)));
}

void nothing(Tape&) {}

}  // namespace

std::span<const BackwardRule> move_rules() {
  static constexpr BackwardRule all[] = {{"constant_pad_nd", pad},
                                         {"embedding", embedding},
                                         {"index", index},
                                         {"pad", pad},
                                         {"repeat", repeat},
                                         {"roll", roll},
                                         {"slice_scatter", slice_scatter},
                                         {"zero", nothing},
                                         {"zeros_like", nothing}};
  return all;
}

}  // namespace strata::graph
