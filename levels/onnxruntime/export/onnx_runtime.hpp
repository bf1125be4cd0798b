// SPDX-License-Identifier: Apache-2.0
// What the program calls of ONNX Runtime's C API (https://onnxruntime.ai/docs/api/c), declared here because the Python
// package ships the library without headers. The API is a table of functions that only grows, so that a function is
// known by its place in it. Errors are std::runtime_error and name the version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

namespace ort {

// Objects of the library, which alone knows what they hold.
struct Status;
struct Environment;
struct Options;
struct CudaOptions;
struct Session;
struct MemoryInfo;
struct Tensor;
struct TypeAndShape;
struct Allocator;

struct Base {
  const void* const* (*table)(std::uint32_t version);
  const char* (*version)();
};
extern "C" const Base* OrtGetApiBase();

// 1.11 is the first version whose table has all of these places.
inline constexpr int kLeastMinor = 11;

template <typename Signature>
struct Function {
  std::size_t place;
};

enum Severity : int { kWarning = 2 };
enum Optimisation : int { kAllOptimisations = 99 };
enum Execution : int { kSequential = 0 };
enum AllocatorType : int { kDeviceAllocator = 0 };
enum MemoryType : int { kDefaultMemory = 0 };

inline constexpr Function<const char*(const Status*)> kMessageOf{2};
inline constexpr Function<Status*(Severity, const char* name, Environment**)> kCreateEnvironment{3};
inline constexpr Function<Status*(const Environment*, const char* file, const Options*, Session**)> kCreateSession{7};
inline constexpr Function<Status*(Session*, const void* run_options, const char* const* input_names,
                                  const Tensor* const* inputs, std::size_t input_count, const char* const* output_names,
                                  std::size_t output_count, Tensor** outputs)>
    kRun{9};
inline constexpr Function<Status*(Options**)> kCreateOptions{10};
inline constexpr Function<Status*(Options*, Execution)> kSetExecution{13};
inline constexpr Function<Status*(Options*, Optimisation)> kSetOptimisation{23};
inline constexpr Function<Status*(Options*, int)> kSetIntraOpThreads{24}, kSetInterOpThreads{25};
inline constexpr Function<Status*(const Session*, std::size_t*)> kCountInputs{30}, kCountOutputs{31};
inline constexpr Function<Status*(const Session*, std::size_t index, Allocator*, char**)> kInputName{36},
    kOutputName{37};
// over bytes of the caller's, which must stay until the tensor is released
inline constexpr Function<Status*(const MemoryInfo*, void* bytes, std::size_t size, const std::int64_t* shape,
                                  std::size_t rank, int type, Tensor**)>
    kCreateTensor{49};
inline constexpr Function<Status*(Tensor*, void** bytes)> kBytesOf{51};
inline constexpr Function<Status*(const TypeAndShape*, int*)> kTypeOf{60};
inline constexpr Function<Status*(const TypeAndShape*, std::size_t*)> kRankOf{61};
inline constexpr Function<Status*(const TypeAndShape*, std::int64_t*, std::size_t rank)> kExtentsOf{62};
inline constexpr Function<Status*(const Tensor*, TypeAndShape**)> kTypeAndShapeOf{65};
inline constexpr Function<Status*(AllocatorType, MemoryType, MemoryInfo**)> kCreateCpuMemoryInfo{69};
inline constexpr Function<Status*(Allocator*, void*)> kFree{76};
inline constexpr Function<Status*(Allocator**)> kDefaultAllocator{78};
inline constexpr Function<void(Environment*)> kReleaseEnvironment{92};
inline constexpr Function<void(Status*)> kReleaseStatus{93};
inline constexpr Function<void(MemoryInfo*)> kReleaseMemoryInfo{94};
inline constexpr Function<void(Session*)> kReleaseSession{95};
inline constexpr Function<void(Tensor*)> kReleaseTensor{96};
inline constexpr Function<void(TypeAndShape*)> kReleaseTypeAndShape{99};
inline constexpr Function<void(Options*)> kReleaseOptions{100};
inline constexpr Function<Status*(Options*, const CudaOptions*)> kAppendCuda{204};
inline constexpr Function<Status*(CudaOptions**)> kCreateCudaOptions{205};
inline constexpr Function<Status*(CudaOptions*, const char* const* keys, const char* const* values, std::size_t count)>
    kSetCudaOptions{206};
inline constexpr Function<void(CudaOptions*)> kReleaseCudaOptions{208};

// The table of the library that the program is linked with.
class Api {
 public:
  Api() : version_(OrtGetApiBase()->version()) {
    int major = 0, minor = 0;
    std::sscanf(version_.c_str(), "%d.%d", &major, &minor);
    if (major == 1 && minor >= kLeastMinor) table_ = OrtGetApiBase()->table(kLeastMinor);
    if (table_ == nullptr)
      throw std::runtime_error("ONNX Runtime " + version_ + " is linked; this program calls functions that 1." +
                               std::to_string(kLeastMinor) +
                               " and newer releases of 1 have: build it with one of them");
  }

  template <typename... Taken, typename... Given>
  void call(Function<Status*(Taken...)> function, Given... given) const {
    Status* const failure = at(function)(given...);
    if (failure == nullptr) return;
    const std::string message = at(kMessageOf)(failure);
    at(kReleaseStatus)(failure);
    throw std::runtime_error("ONNX Runtime " + version_ + ": " + message);
  }

  // The object that `create` gives behind its last argument, released with its last owner.
  template <typename Object, typename... Taken, typename... Given>
  std::shared_ptr<Object> make(Function<Status*(Taken...)> create, Function<void(Object*)> release,
                               Given... given) const {
    Object* object = nullptr;
    call(create, given..., &object);
    return owned(object, release);
  }

  template <typename Object>
  std::shared_ptr<Object> owned(Object* object, Function<void(Object*)> release) const {
    return {object, at(release)};
  }

 private:
  template <typename Signature>
  Signature* at(Function<Signature> function) const {
    return reinterpret_cast<Signature*>(const_cast<void*>(table_[function.place]));
  }

  std::string version_;
  const void* const* table_ = nullptr;
};

}  // namespace ort
