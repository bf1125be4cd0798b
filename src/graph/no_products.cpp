// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "graph/flops.hpp"

namespace strata::graph {
namespace {

// clang-format off
constexpr auto names_without_products = std::to_array<std::string_view>({
    "__and__", "__iand__", "__ior__", "__ixor__", "__lshift__", "__or__", "__rshift__", "__xor__",
    "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "_assert_async", "_assert_scalar", "_assert_tensor_metadata",
    "_batch_norm_impl_index", "_batch_norm_no_update", "_batch_norm_with_update", "_cast_Byte", "_cast_Double",
    "_cast_Float", "_cast_Half", "_cast_Int", "_cast_Long", "_conj", "_copy_from", "_embedding_bag",
    "_embedding_bag_forward_only", "_fill_mem_eff_dropout_mask", "_functional_sym_constrain_range", "_fused_dropout",
    "_fused_rms_norm", "_index_put_impl", "_is_all_true", "_is_any_true", "_local_scalar_dense", "_masked_softmax",
    "_native_batch_norm_legit_no_training", "_neg_view", "_pad_circular", "_pad_enum", "_pin_memory", "_prelu_kernel",
    "_reshape_alias", "_reshape_copy", "_reshape_from_tensor", "_safe_softmax", "_shape_as_tensor", "_stack",
    "_standard_gamma", "_thnn_fused_gru_cell", "_thnn_fused_lstm_cell", "_to_cpu", "_unique", "_unique2",
    "_unsafe_index", "_unsafe_masked_index", "_unsafe_view", "_upsample_bicubic2d_aa", "_upsample_bilinear2d_aa",
    "_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d", "_weight_norm",
    "_weight_norm_interface", "absolute", "acos", "acosh", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "addcdiv", "addcmul", "addr", "adjoint", "alias", "align_as",
    "align_to", "all", "allclose", "alpha_dropout", "aminmax", "angle", "any", "arange", "arccos", "arccosh", "arcsin",
    "arcsinh", "arctan", "arctan2", "arctanh", "argmax", "argmin", "argsort", "argwhere", "as_strided",
    "as_strided_copy", "asin", "asinh", "atan", "atan2", "atanh", "atleast_1d", "atleast_2d", "atleast_3d",
    "avg_pool3d", "bartlett_window", "binary_cross_entropy", "binary_cross_entropy_with_logits", "bincount",
    "binomial", "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "blackman_window", "block_diag", "broadcast_tensors", "broadcast_to", "bucketize", "cartesian_prod", "cauchy",
    "ceil", "celu", "channel_shuffle", "clip", "clone", "coalesce", "col2im", "column_stack", "combinations",
    "complex", "concat", "concatenate", "conj", "conj_physical", "contiguous", "copysign", "cos", "cosh",
    "cosine_embedding_loss", "cosine_similarity", "count_nonzero", "cross", "cummax", "cummin", "cumprod", "cumsum",
    "cumulative_trapezoid", "deg2rad", "dequantize", "detach", "detach_copy", "diag", "diag_embed", "diagflat",
    "diagonal", "diagonal_copy", "diagonal_scatter", "diff", "digamma", "divide", "dsplit", "dstack", "embedding_bag",
    "embedding_renorm", "empty", "empty_like", "empty_permuted", "empty_strided", "equal", "erfc", "erfinv", "exp2",
    "expand_copy", "expm1", "exponential", "eye", "fake_quantize_per_channel_affine",
    "fake_quantize_per_channel_affine_cachemask", "fake_quantize_per_tensor_affine",
    "fake_quantize_per_tensor_affine_cachemask", "feature_alpha_dropout", "feature_dropout", "fill_diagonal", "fix",
    "flip", "fliplr", "flipud", "float_power", "floor", "floor_divide", "fmax", "fmin", "fmod", "frac",
    "fractional_max_pool2d", "fractional_max_pool3d", "frexp", "frobenius_norm", "from_file", "full", "full_like",
    "gather", "gcd", "geometric", "ger", "glu", "greater", "greater_equal", "grid_sampler", "grid_sampler_2d",
    "grid_sampler_3d", "hamming_window", "hann_window", "hardshrink", "heaviside", "hinge_embedding_loss", "histc",
    "hsplit", "hstack", "huber_loss", "hypot", "i0", "igamma", "igammac", "im2col", "imag", "index_add", "index_copy",
    "index_fill", "index_put", "index_reduce", "index_select", "instance_norm", "is_complex", "is_floating_point",
    "is_nonzero", "is_pinned", "is_same_size", "isclose", "isfinite", "isin", "isinf", "isnan", "isneginf", "isposinf",
    "isreal", "item", "kaiser_window", "kl_div", "kron", "kthvalue", "l1_loss", "lcm", "ldexp", "lerp", "less",
    "less_equal", "lgamma", "lift", "lift_fresh", "lift_fresh_copy", "linalg_cross", "linalg_diagonal", "linspace",
    "log10", "log1p", "log2", "log_normal", "log_sigmoid", "log_sigmoid_forward", "logaddexp", "logaddexp2",
    "logcumsumexp", "logical_and", "logical_not", "logical_or", "logical_xor", "logit", "logspace", "logsumexp", "mH",
    "mT", "margin_ranking_loss", "masked_scatter", "masked_select", "max", "max_pool1d_with_indices", "max_pool3d",
    "max_pool3d_with_indices", "max_unpool2d", "max_unpool3d", "median", "meshgrid", "min", "mkldnn_max_pool2d",
    "mode", "moveaxis", "movedim", "mse_loss", "msort", "multi_margin_loss", "multilabel_margin_loss",
    "multilabel_margin_loss_forward", "multinomial", "multiply", "mvlgamma", "nan_to_num", "nanmean", "nanmedian",
    "nanquantile", "nansum", "narrow", "narrow_copy", "native_batch_norm", "native_channel_shuffle",
    "native_group_norm", "native_norm", "negative", "new_empty", "new_empty_strided", "new_full", "new_ones",
    "new_zeros", "nextafter", "nll_loss2d", "nll_loss2d_forward", "nonzero", "nonzero_numpy", "nonzero_static", "norm",
    "norm_except_dim", "normal", "normal_functional", "not_equal", "numpy_T", "one_hot", "ones", "outer",
    "pad_sequence", "pairwise_distance", "permute_copy", "pin_memory", "pixel_shuffle", "pixel_unshuffle", "poisson",
    "poisson_nll_loss", "polar", "polygamma", "positive", "prelu", "prim.device", "prim.layout", "prod", "put",
    "quantile", "quantize_per_channel", "quantize_per_tensor", "rad2deg", "rand", "rand_like", "randint",
    "randint_like", "randn", "randn_like", "random", "randperm", "range", "ravel", "real", "record_stream",
    "reflection_pad1d", "reflection_pad2d", "reflection_pad3d", "remainder", "renorm", "repeat", "repeat_interleave",
    "replication_pad1d", "replication_pad2d", "replication_pad3d", "reshape_as", "resize", "resize_as", "resolve_conj",
    "resolve_neg", "result_type", "rms_norm", "rot90", "round", "row_stack", "rrelu", "rrelu_with_noise",
    "rrelu_with_noise_functional", "scalar_tensor", "scatter", "scatter_add", "scatter_reduce", "searchsorted",
    "segment_reduce", "select_copy", "selu", "set", "sgn", "sign", "signbit", "sin", "sinc", "sinh", "size",
    "slice_copy", "smooth_l1_loss", "soft_margin_loss", "softshrink", "sort", "special_entr", "special_erfcx",
    "special_exp2", "special_expit", "special_expm1", "special_gammaln", "special_i0e", "special_i1", "special_i1e",
    "special_log1p", "special_log_ndtr", "special_log_softmax", "special_logit", "special_logsumexp", "special_ndtr",
    "special_ndtri", "special_round", "special_sinc", "special_softmax", "special_xlog1py", "special_xlogy",
    "special_zeta", "split_copy", "split_with_sizes_copy", "squeeze_copy", "std", "std_mean", "stride", "subtract",
    "sum_to_size", "swapaxes", "swapdims", "sym_constrain_range", "sym_constrain_range_for_size", "sym_numel",
    "sym_size", "sym_storage_offset", "sym_stride", "t_copy", "take", "take_along_dim", "tan", "tensor_split",
    "threshold", "tile", "to_dense", "topk", "torchvision.nms", "torchvision.ps_roi_align", "torchvision.ps_roi_pool",
    "torchvision.roi_align", "torchvision.roi_pool", "trace", "transpose_copy", "trapezoid", "trapz", "tril",
    "tril_indices", "triplet_margin_loss", "triu", "triu_indices", "true_divide", "trunc", "unbind_copy", "unfold",
    "unfold_copy", "uniform", "unique_consecutive", "unique_dim", "unsafe_chunk", "unsafe_split",
    "unsafe_split_with_sizes", "unsqueeze_copy", "upsample_bicubic2d", "upsample_bilinear2d", "upsample_linear1d",
    "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "upsample_trilinear3d", "vander", "var",
    "var_mean", "view_as", "view_as_complex", "view_as_real", "view_copy", "vsplit", "vstack", "xlogy", "zeros"});
// clang-format on

static_assert(std::ranges::is_sorted(names_without_products));

}  // namespace

bool multiplies_no_matrices(std::string_view name) {
  return std::ranges::binary_search(names_without_products, name);
}

}  // namespace strata::graph
