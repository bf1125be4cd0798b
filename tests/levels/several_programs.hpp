// SPDX-License-Identifier: Apache-2.0
// Several generated programs in one file (several_programs.py writes it): each in a namespace of its own, with the
// functions of model.h and training.h under names that begin with it. What they include stands here, outside of all.
#pragma once

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <exception>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "kit/training.hpp"
#include "model.h"
#include "train/training.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

#define EXPORT_NETWORK(net)                                                          \
  EXPORTED const char* net##_error() {                                               \
    return net::model_error();                                                       \
  }                                                                                  \
  EXPORTED void* net##_create(int threads) {                                         \
    return net::model_create(threads);                                               \
  }                                                                                  \
  EXPORTED void net##_destroy(void* model) {                                         \
    net::model_destroy(static_cast<net::Model*>(model));                             \
  }                                                                                  \
  EXPORTED int net##_load(void* model, const char* weights, const char* constants) { \
    return net::model_load(static_cast<net::Model*>(model), weights, constants);     \
  }                                                                                  \
  EXPORTED void net##_set_input(void* model, int number, const void* data) {         \
    net::model_set_input(static_cast<net::Model*>(model), number, data);             \
  }                                                                                  \
  EXPORTED int net##_run(void* model) {                                              \
    return net::model_run(static_cast<net::Model*>(model));                          \
  }                                                                                  \
  EXPORTED const void* net##_output(void* model, int number) {                       \
    return net::model_output(static_cast<net::Model*>(model), number);               \
  }

#define EXPORT_TRAINING(net)                                                            \
  EXPORT_NETWORK(net)                                                                   \
  EXPORTED void net##_set_optimiser(void* model, float rate, float momentum) {          \
    net::model_set_optimiser(static_cast<net::Model*>(model), rate, momentum, 0, 0, 0); \
  }                                                                                     \
  EXPORTED void net##_set_dropout(void* model, int on) {                                \
    net::model_set_dropout(static_cast<net::Model*>(model), on);                        \
  }                                                                                     \
  EXPORTED void net##_set_labels(void* model, const std::int64_t* labels) {             \
    net::model_set_labels(static_cast<net::Model*>(model), labels);                     \
  }                                                                                     \
  EXPORTED int net##_read(void* model, const char* name, void* data) {                  \
    return net::model_read(static_cast<net::Model*>(model), name, data);                \
  }                                                                                     \
  EXPORTED int net##_read_momentum(void* model, const char* name, float* data) {        \
    return net::model_read_momentum(static_cast<net::Model*>(model), name, data);       \
  }
