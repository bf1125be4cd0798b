// SPDX-License-Identifier: Apache-2.0
// Post-ops of an operation as oneDNN's attribute and arguments.
#pragma once

#include "kit/internals.hpp"
#include "kit/operations.hpp"

namespace kit {

dnnl::algorithm algorithm_of(const Function& function);

// Attributes of a call with these posts, and the arguments that they read. A sum with what lies where the result goes
// is the library's own where the call `accumulates`; element-wise calls take one without a word and give something
// else.
struct PostOpsAttr {
  PostOpsAttr(Internals& in, const PostOps& posts, const Tensor& result, bool accumulates = true);
  dnnl::primitive_attr attributes = plain_attributes();
  std::vector<std::pair<int, memory>> arguments;
};

}  // namespace kit
