// SPDX-License-Identifier: Apache-2.0
#include "generate/kit_files.hpp"

#include <algorithm>
#include <cctype>

#include "generate/folder.hpp"

namespace strata::generate {
namespace {

// Whether the code calls the function for a program, which stages call `p`.
bool calls(const std::string& code, std::string_view function) {
  const std::string call = std::string(function) + "(p, ";
  for (std::size_t at = 0; (at = code.find(call, at)) != std::string::npos; ++at) {
    const auto before = at > 0 ? static_cast<unsigned char>(code[at - 1]) : ' ';
    if (std::isalnum(before) == 0 && before != '_') return true;
  }
  return false;
}

void add_source(const std::string& name, std::set<std::string>& files) {
  if (!files.insert(name).second) return;
  for (const auto& kit_file : kit_table())
    if (kit_file.name == name)
      for (const auto& called : kit_file.calls) add_source(std::string(called), files);
}

// The kit's headers that a text includes: as "kit/x.hpp", or beside it as "x.hpp".
std::set<std::string> headers_in(const std::string& text) {
  constexpr std::string_view begin = "#include \"", folder = "kit/";
  std::set<std::string> result;
  for (std::size_t at = 0; (at = text.find(begin, at)) != std::string::npos;) {
    at += begin.size();
    const auto name = text.substr(at, text.find('"', at) - at);
    result.insert(name.starts_with(folder) ? name.substr(folder.size()) : name);
  }
  return result;
}

}  // namespace

const std::set<std::string>& kit_base() {
  static const std::set<std::string> base{"internals.cpp",   "loading.cpp", "program.cpp",
                                          "safetensors.cpp", "trained.cpp", "weights.cpp"};
  return base;
}

const std::vector<KitFile>& kit_table() {
  static const std::vector<KitFile> table{
      {"batch_norm.cpp", {"batch_norm", "batch_norm_backward"}, {"move.cpp"}},
      {"calculate.cpp", {"calculate"}, {}},
      {"columns.cpp", {"put_together", "take_apart"}, {}},
      {"convolution.cpp", {"convolution", "linear", "matrix_product"}, {"one_pixel.cpp", "post_ops.cpp"}},
      {"descend_product.cpp", {"descend_product"}, {}},
      {"direct.cpp", {}, {}},
      {"elementwise.cpp",
       {"add", "apply", "divide", "multiply", "scale_shift", "subtract"},
       {"move.cpp", "one_pixel.cpp", "post_ops.cpp"}},
      {"fold.cpp", {"scale_weight", "shift_bias"}, {}},
      {"gradients.cpp",
       {"apply_backward", "convolution_backward_data", "convolution_backward_weights", "max_pool_training",
        "pool_backward", "softmax_backward"},
       {"convolution.cpp", "normalisation.cpp", "one_pixel.cpp", "post_ops.cpp"}},
      {"layer_norm.cpp", {"layer_norm", "layer_norm_backward"}, {}},
      {"losses.cpp",
       {"clamp_backward", "dropout", "dropout_again", "dropout_backward", "exact_log_softmax", "log_softmax_backward",
        "negative_log_likelihood", "negative_log_likelihood_backward"},
       {}},
      {"move.cpp", {"add_rows", "concatenate", "copy", "expand", "fill", "look_up", "permute", "reorder"}, {}},
      {"normalisation.cpp",
       {"attention", "euclidean_norm", "largest", "log_softmax", "mean", "smallest", "softmax", "sum"},
       {"convolution.cpp", "elementwise.cpp", "move.cpp", "post_ops.cpp"}},
      {"one_pixel.cpp", {}, {}},
      {"order.cpp", {"put", "scatter", "sort"}, {}},
      {"own_kernels.cpp",
       {"direct_convolution", "direct_linear", "winograd_backward_data", "winograd_convolution"},
       {"direct.cpp", "winograd.cpp"}},
      {"pick.cpp", {"gather", "pick", "place_of_largest", "place_of_smallest", "running_sum"}, {}},
      {"pooling.cpp",
       {"average_pool", "average_pool_with_padding", "max_pool", "mean_of_places", "uneven_average_pool",
        "uneven_average_pool_backward"},
       {"move.cpp"}},
      {"post_ops.cpp", {}, {}},
      {"recurrent.cpp", {"recurrent_backward", "recurrent_layer"}, {}},
      {"resizing.cpp", {"resize", "resize_backward"}, {}},
      {"transposed_convolution.cpp", {"transposed_convolution"}, {"convolution.cpp"}},
      {"winograd.cpp", {}, {}},
  };
  return table;
}

Result<std::set<std::string>> kit_files(const std::filesystem::path& kit, const std::string& code,
                                        const std::set<std::string>& includes) {
  std::set<std::string> files = kit_base();
  // `descend` and `clip_gradients` lie in trained.cpp, which every program has
  for (const auto& kit_file : kit_table())
    if (std::any_of(kit_file.functions.begin(), kit_file.functions.end(), [&](auto name) { return calls(code, name); }))
      add_source(std::string(kit_file.name), files);
  std::vector<std::string> open(files.begin(), files.end());
  for (const auto& include : includes)
    if (files.insert(include).second) open.push_back(include);
  while (!open.empty()) {
    const auto text = read_text(kit / open.back());
    open.pop_back();
    if (!text) return tl::unexpected(text.error());
    for (const auto& header : headers_in(*text))
      if (files.insert(header).second) open.push_back(header);
  }
  return files;
}

}  // namespace strata::generate
