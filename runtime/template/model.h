/* SPDX-License-Identifier: Apache-2.0
   The network as a library for C and any language that can call C. One thread at a time may use a Model. */
#ifndef MODEL_H
#define MODEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
/* All else is hidden, so that a process can hold several networks. */
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

typedef struct Model Model;

/* An input or output: contiguous, of `rank` extents, `elements` in all. `type` is as safetensors files have it: F32
   (float), I64, I32, U8, BOOL (a byte, 0 or 1). */
typedef struct {
  const char* name;
  const char* type;
  int rank;
  int64_t extents[8];
  int64_t elements;
  int64_t bytes;
} ModelTensor;

/* Bytes that a Model holds, and what a run consists of. */
typedef struct {
  int64_t arena_bytes, least_arena_bytes; /* for activations: as planned, and what no plan can go below */
  int64_t weight_bytes, scratch_bytes, output_bytes;
  int64_t parameters; /* elements */
  int calls, moves, reference_kernels, threads;
} ModelFacts;

/* A call of a run: the layer that it belongs to, what it computes and by which kernel, and whether it only moves
   bytes. */
typedef struct {
  const char* layer;
  const char* operation;
  const char* kernel;
  int moves_only;
} ModelCall;

const char* model_name(void);
const char* model_library(void); /* "oneDNN 3.2.0 with AVX-512" */
/* Why the last call of this thread failed. */
const char* model_error(void);
int model_input_count(void);
int model_output_count(void);
const ModelTensor* model_input(int number);
const ModelTensor* model_output_tensor(int number);

/* Makes all calls and allocates all memory, for `threads` threads (0: as generate was told, else as OpenMP says). NULL
 * on failure. */
Model* model_create(int threads);
void model_destroy(Model* model);
/* Puts the weights of a safetensors file in, by PyTorch's names; at first, and again at any time. `constants`: the file
   of what is no weight of the network, or NULL where there is none. 0, or -1 on failure. */
int model_load(Model* model, const char* weights, const char* constants);
/* Of the tensor as declared; must live until the run has ended. 0, or -1 on failure. */
int model_set_input(Model* model, int number, const void* data);
int model_run(Model* model); /* 0, or -1 on failure */
/* The two halves of model_run. A program on a GPU computes meanwhile, so that inputs of the next run can be set between
   them, which go to the device at once; one on a processor is done when the first half returns. */
int model_start(Model* model);
int model_wait(Model* model);
/* Of the last run that was waited for, valid until the next. */
const void* model_output(const Model* model, int number);
ModelFacts model_facts(const Model* model);
/* Of call `number` of a run, from 0 to ModelFacts.calls - 1, in the order in which they run. */
ModelCall model_call(const Model* model, int number);
/* A run, or a whole training step, done when it returns. `times`, two for each call, gets when it began and ended, in
   nanoseconds of the monotonic clock; a program on a GPU waits for each. */
int model_run_timed(Model* model, int64_t* times);
/* A line for each call: least microseconds of `rounds` runs, layer, kernel. Valid until the next call of it. */
const char* model_profile(Model* model, int rounds);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
