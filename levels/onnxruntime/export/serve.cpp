// SPDX-License-Identifier: Apache-2.0
// Serves the network: serve FOLDER INPUTS.safetensors [OUTPUTS.safetensors]. FOLDER holds model.onnx with its weights.
#include "serve.hpp"

#include <cstdlib>

#include "onnx_runtime.hpp"

struct ElementType {
  std::string name;
  int number;  // of ONNX
  std::size_t bytes;
};
const std::vector<ElementType> kTypes{{"F32", 1, 4}, {"U8", 2, 1},   {"I8", 3, 1},   {"I16", 5, 2},  {"I32", 6, 4},
                                      {"I64", 7, 8}, {"BOOL", 9, 1}, {"F16", 10, 2}, {"F64", 11, 8}, {"BF16", 16, 2}};

// With the settings of the run that was measured.
class OnnxNetwork {
 public:
  explicit OnnxNetwork(const std::string& file) {
    setenv("ORT_DISABLE_TELEMETRY", "1", 0);  // read when the environment is made
    environment_ = api_.make(ort::kCreateEnvironment, ort::kReleaseEnvironment, ort::kWarning, "serve");
    const auto options = api_.make(ort::kCreateOptions, ort::kReleaseOptions);
    api_.call(ort::kSetOptimisation, options.get(), ort::kAllOptimisations);
    api_.call(ort::kSetIntraOpThreads, options.get(), kThreads);
    api_.call(ort::kSetInterOpThreads, options.get(), 1);
    api_.call(ort::kSetExecution, options.get(), ort::kSequential);
    if (kDevice == "cuda") append_cuda(options.get());
    session_ = api_.make(ort::kCreateSession, ort::kReleaseSession, environment_.get(), file.c_str(), options.get());
    memory_ = api_.make(ort::kCreateCpuMemoryInfo, ort::kReleaseMemoryInfo, ort::kDeviceAllocator, ort::kDefaultMemory);
    inputs_ = names(ort::kCountInputs, ort::kInputName);
    outputs_ = names(ort::kCountOutputs, ort::kOutputName);
  }

  std::vector<RawTensor> run(const RawTensors& inputs, int entry) const {
    std::vector<std::shared_ptr<ort::Tensor>> owners;
    std::vector<const ort::Tensor*> arguments;
    std::vector<const char*> input_names, output_names;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      owners.push_back(tensor_of(input_of(inputs, entry, case_name(i))));
      arguments.push_back(owners.back().get());
      input_names.push_back(inputs_[i].c_str());
    }
    for (const auto& name : outputs_) output_names.push_back(name.c_str());
    std::vector<ort::Tensor*> given(outputs_.size());
    api_.call(ort::kRun, session_.get(), static_cast<const void*>(nullptr), input_names.data(), arguments.data(),
              arguments.size(), output_names.data(), output_names.size(), given.data());
    for (auto* tensor : given) owners.push_back(api_.owned(tensor, ort::kReleaseTensor));
    std::vector<RawTensor> results;
    for (auto* tensor : given) results.push_back(raw(tensor));
    return results;
  }

 private:
  // TF32 is off. An error where the library or this machine has no CUDA, while ONNX Runtime's own calls would go on
  // without.
  void append_cuda(ort::Options* options) const {
    const auto cuda = api_.make(ort::kCreateCudaOptions, ort::kReleaseCudaOptions);
    const char* const key = "use_tf32";
    const char* const value = "0";
    api_.call(ort::kSetCudaOptions, cuda.get(), &key, &value, std::size_t{1});
    api_.call(ort::kAppendCuda, options, static_cast<const ort::CudaOptions*>(cuda.get()));
  }

  template <typename Count, typename Name>
  std::vector<std::string> names(Count count, Name name) const {
    std::size_t many = 0;
    api_.call(count, session_.get(), &many);
    ort::Allocator* allocator = nullptr;
    api_.call(ort::kDefaultAllocator, &allocator);
    std::vector<std::string> all;
    for (std::size_t i = 0; i < many; ++i) {
      char* text = nullptr;
      api_.call(name, session_.get(), i, allocator, &text);
      all.emplace_back(text);
      api_.call(ort::kFree, allocator, static_cast<void*>(text));
    }
    return all;
  }

  // In their order, since an input that is also an output is renamed; the exporter drops one that nothing reads.
  const std::string& case_name(std::size_t i) const {
    return inputs_.size() == kInputs.size() ? kInputs[i].name : inputs_[i];
  }

  // Over the bytes of `tensor`, which a run only reads.
  std::shared_ptr<ort::Tensor> tensor_of(const RawTensor& tensor) const {
    for (const auto& type : kTypes)
      if (type.name == tensor.dtype)
        return api_.make(ort::kCreateTensor, ort::kReleaseTensor, memory_.get(),
                         static_cast<void*>(const_cast<char*>(tensor.bytes.data())), tensor.bytes.size(),
                         tensor.shape.data(), tensor.shape.size(), type.number);
    throw std::runtime_error("ONNX Runtime has no type for " + tensor.dtype);
  }

  RawTensor raw(ort::Tensor* tensor) const {
    const auto about = api_.make(ort::kTypeAndShapeOf, ort::kReleaseTypeAndShape, tensor);
    int number = 0;
    std::size_t rank = 0;
    void* bytes = nullptr;
    api_.call(ort::kTypeOf, about.get(), &number);
    api_.call(ort::kRankOf, about.get(), &rank);
    std::vector<std::int64_t> shape(rank);
    api_.call(ort::kExtentsOf, about.get(), shape.data(), rank);
    for (const auto& type : kTypes)
      if (type.number == number) {
        std::size_t size = type.bytes;
        for (const auto extent : shape) size *= static_cast<std::size_t>(extent);
        api_.call(ort::kBytesOf, tensor, &bytes);
        return {type.name, shape, std::string(static_cast<const char*>(bytes), size)};
      }
    throw std::runtime_error("an output has ONNX's type " + std::to_string(number));
  }

  ort::Api api_;
  std::shared_ptr<ort::Environment> environment_;  // the others need it until they are gone
  std::shared_ptr<ort::Session> session_;
  std::shared_ptr<ort::MemoryInfo> memory_;
  std::vector<std::string> inputs_, outputs_;
};

Network load(const std::string& folder) {
  return [network = std::make_shared<OnnxNetwork>(folder + "/model.onnx")](const RawTensors& inputs, int entry) {
    return network->run(inputs, entry);
  };
}

int main(int argc, char** argv) {
  return serve(argc, argv, load);
}
