/* SPDX-License-Identifier: Apache-2.0
   What a training step of model.h's network adds to it. A step is its phases in their order, or model_run: forward,
   loss, backward; each parameter is updated within the last one, as soon as its gradient is known. The only output is
   the loss. */
#ifndef TRAINING_H
#define TRAINING_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* What a step changes: parameters and statistics, and counts of steps, which are one int64. */
int model_state_count(void);
const ModelTensor* model_state(int number); /* a count: I64 */
/* By name; contiguous. 0, or -1 where there is no such. */
int model_read(const Model* model, const char* name, void* data);
int model_write(Model* model, const char* name, const void* data);
/* The momentum of a parameter, of Adam its mean of gradients (exp_avg); -1 too where it has none, since none was
   written and no step was made. */
int model_read_momentum(const Model* model, const char* name, float* data);
int model_write_momentum(Model* model, const char* name, const float* data);
/* Adam's mean of squares (exp_avg_sq), likewise. */
int model_read_square(const Model* model, const char* name, float* data);
int model_write_square(Model* model, const char* name, const float* data);
/* All of these, and the count of steps. */
void model_drop_momentum(Model* model);

/* SGD as PyTorch defines it; from the next step on. After Adam it begins without buffers. */
void model_set_optimiser(Model* model, float rate, float momentum, float dampening, float weight_decay, int nesterov);
/* Adam as PyTorch defines it, with `decoupled` decay AdamW; from the next step on. After SGD it begins without buffers.
   0, or -1 where its second buffers find no memory. */
int model_set_adam(Model* model, double rate, double beta1, double beta2, double eps, double weight_decay,
                   int decoupled);
/* The largest norm of all gradients together, to which they are clipped before any parameter changes, with which the
   program was generated (--clip-norm); 0: it does not clip. */
double model_clip_norm(void);
/* Another one, from the next step on; 0: gradients stay as they are. A step begins with 0. 0, or -1 where the program
   does not clip. */
int model_set_clip_norm(Model* model, double norm);
/* Steps done before, by which Adam corrects its bias; each step adds one. */
void model_set_steps(Model* model, int64_t done);
void model_set_dropout(Model* model, int on);
/* How many masks were drawn, from which the next ones follow: with the weights and the momentum, all that a training
   needs to go on as if nothing had happened. A step begins at 0; a number far from that draws others. -1 where the
   network has no dropout. */
int model_read_draws(const Model* model, uint64_t* count);
void model_write_draws(Model* model, uint64_t count);
/* How many labels a step reads: one class a row of the batch; 0 where targets are inputs and the network's output is
   the loss. */
int64_t model_label_count(void);
/* As many as that, each from 0 to below the number of classes; must live until the step has ended. */
void model_set_labels(Model* model, const int64_t* labels);
/* 0 forward, 1 loss, 2 backward and update. 0, or -1 on failure. */
int model_run_phase(Model* model, int phase);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
