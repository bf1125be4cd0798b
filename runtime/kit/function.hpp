// SPDX-License-Identifier: Apache-2.0
// Functions of one element, by name and two numbers: what programs on a CPU and on a CUDA device have in common.
#pragma once

#include <cstdint>

namespace kit {

// Of one element. alpha and beta as in oneDNN's element-wise calls.
struct Function {
  enum class Kind : std::uint8_t {
    relu,
    clip,
    hardswish,
    hardsigmoid,
    swish,
    logistic,
    tanh,
    elu,
    gelu_erf,
    gelu_tanh,
    exp,
    sqrt,
    abs,
    square,
    linear
  };
  Kind kind = Kind::relu;
  float alpha = 0, beta = 0;
};
constexpr Function relu(float negative_slope = 0) {
  return {Function::Kind::relu, negative_slope, 0};
}
constexpr Function clip(float low, float high) {
  return {Function::Kind::clip, low, high};
}
constexpr Function hardswish(float alpha = 1.0F / 6, float beta = 0.5F) {
  return {Function::Kind::hardswish, alpha, beta};
}
constexpr Function hardsigmoid(float alpha = 1.0F / 6, float beta = 0.5F) {
  return {Function::Kind::hardsigmoid, alpha, beta};
}
constexpr Function silu(float alpha = 1) {
  return {Function::Kind::swish, alpha, 0};
}
constexpr Function sigmoid() {
  return {Function::Kind::logistic, 0, 0};
}
constexpr Function tangent() {
  return {Function::Kind::tanh, 0, 0};
}
constexpr Function elu(float alpha = 1) {
  return {Function::Kind::elu, alpha, 0};
}
constexpr Function gelu() {
  return {Function::Kind::gelu_erf, 0, 0};
}
constexpr Function gelu_tanh() {
  return {Function::Kind::gelu_tanh, 0, 0};
}
constexpr Function exponential() {
  return {Function::Kind::exp, 0, 0};
}
constexpr Function square_root() {
  return {Function::Kind::sqrt, 0, 0};
}
constexpr Function absolute() {
  return {Function::Kind::abs, 0, 0};
}
constexpr Function square() {
  return {Function::Kind::square, 0, 0};
}
constexpr Function line(float alpha, float beta) {
  return {Function::Kind::linear, alpha, beta};
}  // alpha x + beta

}  // namespace kit
