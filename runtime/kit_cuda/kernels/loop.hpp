// SPDX-License-Identifier: Apache-2.0
// The two shapes of all kernels: something for each of many elements, and for each of many rows by a team of threads
// that can add up. Compiled by nvcc these are kernels, by a C++ compiler loops over the same source.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kit_cuda/kernels/device.hpp"

#ifdef __CUDACC__
#define KIT_DEVICE __device__  // nvcc needs --extended-lambda
#else
#include "kit_cuda/kernels/host.hpp"
#define KIT_DEVICE
#endif

namespace kit_cuda {

using Index = std::int64_t;

// Threads that work on one row together. A row is worked on in loops `for (i = team.index; i < n; i += team.size)`
// and by what stands behind `if (team.leads())`, and nothing else may write.
struct Team {
  Index index = 0, size = 1;

  KIT_DEVICE bool leads() const { return index == 0; }
  // Of the values of all threads; every thread has to call it, and gets it.
  template <class T>
  KIT_DEVICE T sum(T value) const {
    return joined(value, [](T a, T b) { return a + b; });
  }
  // NaN if one of them is
  template <class T>
  KIT_DEVICE T largest(T value) const {
    return joined(value, [](T a, T b) { return a > b || a != a ? a : b; });
  }

#ifdef __CUDACC__
  int lanes = 1;  // neighbouring threads work on neighbouring rows
  void* shared = nullptr;

 private:
  template <class T, class Join>
  KIT_DEVICE T joined(T value, Join join) const {
    auto* all = static_cast<T*>(shared);
    const int own = static_cast<int>(threadIdx.x);
    all[own] = value;
    __syncthreads();
    for (int half = static_cast<int>(blockDim.x) / 2; half >= lanes; half /= 2) {
      if (own < half) all[own] = join(all[own], all[own + half]);
      __syncthreads();
    }
    const T result = all[own % lanes];
    __syncthreads();
    return result;
  }
#else
 private:
  template <class T, class Join>
  T joined(T value, Join) const {
    return value;
  }
#endif
};

#ifdef __CUDACC__

constexpr int threads_of_elements = 256, most_threads_of_rows = 512, most_lanes = 32;
constexpr Index most_blocks = 1 << 20, behind_all_elements = std::numeric_limits<Index>::max();

template <class Do>
__global__ void element_kernel(Index count, Do act) {
  const Index step = static_cast<Index>(gridDim.x) * blockDim.x;
  for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) act(i);
}

template <class Do>
__global__ void row_kernel(Index rows, int lanes, Do act) {
  __shared__ double shared[most_threads_of_rows];
  const int own = static_cast<int>(threadIdx.x);
  for (Index first = static_cast<Index>(blockIdx.x) * lanes; first < rows;
       first += static_cast<Index>(gridDim.x) * lanes) {
    const Index row = first + own % lanes;
    Team team;
    // a lane without a row adds up with the others, and finds no element to work on
    team.index = row < rows ? own / lanes : behind_all_elements;
    team.size = static_cast<int>(blockDim.x) / lanes;
    team.lanes = lanes;
    team.shared = shared;
    act(row < rows ? row : rows - 1, team);
  }
}

// act(i) for each i below `count`.
template <class Do>
void for_each(Stream stream, Index count, Do act) {
  if (count <= 0) return;
  const Index blocks = std::min((count + threads_of_elements - 1) / threads_of_elements, most_blocks);
  element_kernel<<<static_cast<unsigned>(blocks), threads_of_elements, 0, stream>>>(count, act);
  check_launch();
}

// act(row, team) for each row of `length` elements. `adjacent`: in memory the neighbour of an element is that of the
// next row, not the next one of its own.
template <class Do>
void for_each_row(Stream stream, Index rows, Index length, bool adjacent, Do act) {
  if (rows <= 0) return;
  int lanes = 1, threads = 32;
  while (adjacent && lanes < most_lanes && lanes < rows) lanes *= 2;
  while (threads < most_threads_of_rows && threads < length * lanes) threads *= 2;
  const Index blocks = std::min((rows + lanes - 1) / lanes, most_blocks);
  row_kernel<<<static_cast<unsigned>(blocks), static_cast<unsigned>(threads), 0, stream>>>(rows, lanes, act);
  check_launch();
}

#else

template <class Do>
void for_each(Stream, Index count, Do act) {
  perform([=] {
    for (Index i = 0; i < count; ++i) act(i);
  });
}
template <class Do>
void for_each_row(Stream, Index rows, Index, bool, Do act) {
  perform([=] {
    for (Index row = 0; row < rows; ++row) act(row, Team{});
  });
}

#endif

}  // namespace kit_cuda
