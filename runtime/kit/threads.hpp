// SPDX-License-Identifier: Apache-2.0
// OpenMP as the kit's own kernels use it; without OpenMP everything runs in the caller's thread.
#pragma once

#ifdef _OPENMP
#include <omp.h>
#endif

namespace kit::kernels {

// How many threads a call may have.
inline int most_threads() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

// f(thread, threads) once in each of at most `threads` threads.
template <typename F>
void in_parallel(int threads, const F& f) {
#ifdef _OPENMP
#pragma omp parallel num_threads(threads)
  f(omp_get_thread_num(), omp_get_num_threads());
#else
  (void)threads;
  f(0, 1);
#endif
}

// Inside in_parallel, called equally often by each of its threads: returns when all have called it.
inline void wait_for_all() {
#ifdef _OPENMP
#pragma omp barrier
#endif
}

}  // namespace kit::kernels
