// SPDX-License-Identifier: Apache-2.0
// Reads a bundle and its inputs for the worker (docs/bundle.md). Throws Failure with the file and the field.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "strata/level.hpp"

namespace strata {

using Ring = std::vector<std::vector<HostTensor>>;  // [index][input], in the bundle's order

Case read_case(const nlohmann::json& json);
Bundle read_bundle(const std::filesystem::path& folder);
SafeTensors read_weight_set(const Bundle& bundle, std::string_view set);
// Copies every whole index (0, 1, ...) of the file into memory of its own, 64-byte aligned; checks dtypes and shapes.
Ring read_inputs(const Bundle& bundle, const std::filesystem::path& path);
// The same of a file of one entry that is to be exchanged with `like`: of the same shapes.
std::vector<HostTensor> read_unseen(const Bundle& bundle, const std::filesystem::path& path,
                                    const std::vector<HostTensor>& like);
// Whether the network of a case of mode train returns its loss: its first output is one number, where losses of labels
// take scores.
bool gives_loss(const Bundle& bundle);
// The labels of `count` entries of the ring, each I64 [batch] within the classes of the network's first output, copied
// likewise.
std::vector<HostTensor> read_labels(const Bundle& bundle, const std::filesystem::path& path, std::size_t count);

// Owned, 64-byte aligned, not initialised host memory for one tensor; `view.data` may be written through `writable`.
HostTensor allocate(std::string dtype, std::vector<std::int64_t> shape);
std::byte* writable(HostTensor& tensor);
HostTensor copy_of(const TensorView& view);
// "float32" -> "F32"; empty: no such type.
std::string safetensors_dtype(std::string_view torch_name);

}  // namespace strata
