// SPDX-License-Identifier: Apache-2.0
// Serves the network: serve FOLDER INPUTS.safetensors [OUTPUTS.safetensors]. FOLDER holds model.xml and model.bin;
// inputs are named <entry>/<input> with entries from 0 on, outputs <entry>/<output>.
#include "serve.hpp"

#include <openvino/openvino.hpp>

const std::vector<std::pair<std::string, ov::element::Type>> kTypes{
    {"F64", ov::element::f64}, {"F32", ov::element::f32},     {"F16", ov::element::f16}, {"BF16", ov::element::bf16},
    {"I64", ov::element::i64}, {"I32", ov::element::i32},     {"I16", ov::element::i16}, {"I8", ov::element::i8},
    {"U8", ov::element::u8},   {"BOOL", ov::element::boolean}};

ov::Tensor to_openvino(const RawTensor& raw) {
  for (const auto& [name, type] : kTypes)
    if (name == raw.dtype) {
      ov::Tensor tensor(type, ov::Shape(raw.shape.begin(), raw.shape.end()));
      if (tensor.get_byte_size() != raw.bytes.size())
        throw std::runtime_error("a tensor's shape and its number of bytes do not fit");
      std::memcpy(tensor.data(), raw.bytes.data(), raw.bytes.size());
      return tensor;
    }
  throw std::runtime_error("OpenVINO has no type for " + raw.dtype);
}

RawTensor from_openvino(const ov::Tensor& tensor) {
  const auto shape = tensor.get_shape();
  for (const auto& [name, type] : kTypes)
    if (type == tensor.get_element_type())
      return {name,
              {shape.begin(), shape.end()},
              std::string(static_cast<const char*>(tensor.data()), tensor.get_byte_size())};
  throw std::runtime_error("an output has the type " + tensor.get_element_type().get_type_name());
}

Network load(const std::string& folder) {
  ov::Core core;
  // float32 is said, since the plugin would take bfloat16 where the processor has it
  auto network =
      core.compile_model(folder + "/model.xml", "CPU", ov::hint::performance_mode(ov::hint::PerformanceMode::LATENCY),
                         ov::inference_num_threads(kThreads), ov::hint::inference_precision(ov::element::f32));
  return [network, request = network.create_infer_request()](const RawTensors& inputs, int entry) mutable {
    for (const auto& port : network.inputs())
      request.set_tensor(port, to_openvino(input_of(inputs, entry, port.get_any_name())));
    request.infer();
    std::vector<RawTensor> results;
    for (std::size_t i = 0; i < network.outputs().size(); ++i)
      results.push_back(from_openvino(request.get_output_tensor(i)));
    return results;
  };
}

int main(int argc, char** argv) {
  return serve(argc, argv, load);
}
