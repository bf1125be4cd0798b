// SPDX-License-Identifier: Apache-2.0
// The C interface of training.h on the program that the stages build.
#include "training.h"

#include "model.hpp"

int model_state_count(void) {
  return static_cast<int>(std::size(network::state));
}

const ModelTensor* model_state(int number) {
  static const auto all = tensors_of(network::state);
  return tensor_at(all, number);
}

int model_read(const Model* model, const char* name, void* data) {
  return guarded(-1, [&] { return model->program.read(name, data) ? 0 : -1; });
}
int model_write(Model* model, const char* name, const void* data) {
  return guarded(-1, [&] { return model->program.write(name, data) ? 0 : -1; });
}
int model_read_momentum(const Model* model, const char* name, float* data) {
  return guarded(-1, [&] { return model->program.read_momentum(name, data) ? 0 : -1; });
}
int model_write_momentum(Model* model, const char* name, const float* data) {
  return guarded(-1, [&] { return model->program.write_momentum(name, data) ? 0 : -1; });
}
int model_read_square(const Model* model, const char* name, float* data) {
  return guarded(-1, [&] { return model->program.read_square(name, data) ? 0 : -1; });
}
int model_write_square(Model* model, const char* name, const float* data) {
  return guarded(-1, [&] { return model->program.write_square(name, data) ? 0 : -1; });
}
void model_drop_momentum(Model* model) {
  model->program.drop_momentum();
}

void model_set_optimiser(Model* model, float rate, float momentum, float dampening, float weight_decay, int nesterov) {
  model->program.set_optimiser(kit::Sgd{rate, momentum, dampening, weight_decay, nesterov != 0});
}
int model_set_adam(Model* model, double rate, double beta1, double beta2, double eps, double weight_decay,
                   int decoupled) {
  return guarded(-1, [&] {
    model->program.set_optimiser(kit::Adam{rate, beta1, beta2, eps, weight_decay, decoupled != 0});
    return 0;
  });
}
double model_clip_norm(void) {
  return network::clip_norm;
}
int model_set_clip_norm(Model* model, double norm) {
  if (norm > 0 && network::clip_norm <= 0) return -1;
  model->program.set_clip_norm(norm);
  return 0;
}
void model_set_steps(Model* model, int64_t done) {
  model->program.set_steps(done);
}
void model_set_dropout(Model* model, int on) {
  model->program.set_dropout(on != 0);
}
int model_read_draws(const Model* model, uint64_t* count) {
  return model->program.draws(*count) ? 0 : -1;
}
void model_write_draws(Model* model, uint64_t count) {
  model->program.set_draws(count);
}
int64_t model_label_count(void) {
  return network::labels;
}
void model_set_labels(Model* model, const int64_t* labels) {
  model->program.set_labels(labels);
}

int model_run_phase(Model* model, int phase) {
  return guarded(-1, [&] {
    model->program.run_phase(phase);
    return 0;
  });
}
