// SPDX-License-Identifier: Apache-2.0
// Preloaded into a process: counts the allocations of each library while run_counted() runs. An allocation belongs to
// the library whose code called malloc or operator new.
#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

extern "C" void* __libc_malloc(std::size_t);
extern "C" void* __libc_calloc(std::size_t, std::size_t);
extern "C" void* __libc_memalign(std::size_t, std::size_t);

namespace {

constexpr int most = 64;
struct Library {
  std::atomic<void*> base{nullptr};
  std::atomic<long> calls{0};
};
Library libraries[most];
std::atomic<bool> counting{false};

void count(void* caller) {
  if (!counting) return;
  Dl_info about{};
  if (dladdr(caller, &about) == 0) return;
  for (Library& one : libraries) {
    void* none = nullptr;
    if (one.base.compare_exchange_strong(none, about.dli_fbase) || none == about.dli_fbase) {
      ++one.calls;
      return;
    }
  }
}

}  // namespace

extern "C" {

void* malloc(std::size_t bytes) {
  count(__builtin_return_address(0));
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count_of, std::size_t bytes) {
  count(__builtin_return_address(0));
  return __libc_calloc(count_of, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  count(__builtin_return_address(0));
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** to, std::size_t alignment, std::size_t bytes) {
  count(__builtin_return_address(0));
  *to = __libc_memalign(alignment, bytes);
  return *to == nullptr ? 12 : 0;
}

// Runs run(model) `times` times; the first result that is not 0, or 0.
int run_counted(int (*run)(void*), void* model, int times) {
  counting = true;
  int failed = 0;
  for (int i = 0; i < times && failed == 0; ++i) failed = run(model);
  counting = false;
  return failed;
}

// Allocations of the library whose file's name holds `name`.
long allocations_of(const char* name) {
  long calls = 0;
  for (const Library& one : libraries) {
    Dl_info about{};
    if (one.base != nullptr && dladdr(one.base, &about) != 0 && std::strstr(about.dli_fname, name) != nullptr)
      calls += one.calls;
  }
  return calls;
}

}  // extern "C"

void* operator new(std::size_t bytes) {
  count(__builtin_return_address(0));
  void* memory = __libc_malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new[](std::size_t bytes) {
  count(__builtin_return_address(0));
  void* memory = __libc_malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* data) noexcept {
  std::free(data);
}
void operator delete[](void* data) noexcept {
  std::free(data);
}
void operator delete(void* data, std::size_t) noexcept {
  std::free(data);
}
void operator delete[](void* data, std::size_t) noexcept {
  std::free(data);
}
