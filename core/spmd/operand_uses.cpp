#include "core/spmd/operand_uses.h"

#include <algorithm>
#include <array>

namespace ranklab {
namespace {

// Operators with the same uses, separated by spaces. All operators that are not listed carry their operands: they move,
// choose or add up elements.
struct Family {
  std::string_view uses, operators;
};

constexpr std::array kFamilies = {
    // An operator that chooses between operands, or writes one into another, is treated like a sum: a later sum over
    // the ranks would count the complete part once per rank.
    Family{"a",
           " add sub rsub _foreach_add _foreach_sub index_add scatter_add index_put index_copy scatter scatter_reduce "
           "masked_scatter slice_scatter select_scatter where masked_fill cat stack _foreach_copy "},
    Family{"aan", " lerp "},
    Family{"f", " mul mm bmm matmul mv dot vdot outer ger tensordot einsum cross _foreach_mul "},
    Family{"fn", " div divide true_divide _foreach_div "},
    Family{"ffa", " linear convolution conv1d conv2d "},
    Family{"ffna", " _grouped_mm "},
    Family{"aff", " addmm baddbmm addbmm addmv addr addcmul _foreach_addcmul "},
    Family{"afn", " addcdiv _foreach_addcdiv "},
    // Backward operators that are linear only in the gradient.
    Family{"cn",
           " sigmoid_backward tanh_backward silu_backward gelu_backward threshold_backward elu_backward "
           "leaky_relu_backward hardtanh_backward hardswish_backward hardsigmoid_backward mish_backward "
           "softplus_backward log_sigmoid_backward glu_backward _softmax_backward_data _log_softmax_backward_data "
           "native_layer_norm_backward native_group_norm_backward _fused_rms_norm_backward nll_loss_backward "
           "mse_loss_backward smooth_l1_loss_backward "
           "_scaled_dot_product_flash_attention_for_cpu_backward _scaled_dot_product_flash_attention_backward "
           "_scaled_dot_product_efficient_attention_backward _scaled_dot_product_cudnn_attention_backward "
           "_scaled_dot_product_fused_attention_overrideable_backward "},
    Family{"n",
           // elementwise
           " exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh atan2 sqrt rsqrt square pow "
           "float_power reciprocal abs sign sgn erf erfc erfinv round floor ceil trunc frac clamp clamp_min clamp_max "
           "nan_to_num hypot remainder fmod floor_divide logaddexp xlogy special_xlogy _foreach_pow _foreach_sqrt "
           "_foreach_reciprocal _foreach_exp _foreach_abs _foreach_maximum _foreach_minimum _foreach_clamp_min "
           "_foreach_clamp_max "
           // activations
           "sigmoid tanh relu relu6 silu gelu elu celu selu leaky_relu prelu hardtanh hardswish hardsigmoid mish "
           "threshold softplus log_sigmoid log_sigmoid_forward glu softmax _softmax _safe_softmax log_softmax "
           "_log_softmax softmin logsumexp logcumsumexp "
           // comparisons, sorting and extremes
           "eq ne lt le gt ge equal isclose allclose isnan isinf isfinite isneginf isposinf signbit logical_not "
           "logical_and logical_or logical_xor bitwise_and bitwise_not max min amax amin aminmax maximum minimum fmax "
           "fmin argmax argmin sort "
           "msort argsort topk kthvalue median nanmedian mode cummax cummin searchsorted bucketize histc nonzero "
           "count_nonzero any all multinomial "
           // products and norms over elements
           "prod cumprod norm linalg_vector_norm linalg_matrix_norm linalg_norm frobenius_norm nuclear_norm "
           "_foreach_norm renorm var std var_mean std_mean cdist dist linalg_inv linalg_qr linalg_svd det "
           // layers
           "native_layer_norm layer_norm rms_norm _fused_rms_norm native_group_norm group_norm batch_norm "
           "native_batch_norm cross_entropy_loss mse_loss l1_loss smooth_l1_loss huber_loss kl_div "
           "binary_cross_entropy binary_cross_entropy_with_logits scaled_dot_product_attention "
           "_scaled_dot_product_attention_math _scaled_dot_product_flash_attention_for_cpu "
           "_scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention "
           "_scaled_dot_product_cudnn_attention _scaled_dot_product_fused_attention_overrideable "},
};
constexpr std::string_view kConstants =
    " empty_like zeros_like ones_like full_like rand_like randn_like new_empty new_empty_strided new_zeros new_ones "
    "new_full ";
constexpr std::string_view kOverwriting = " copy_ fill_ zero_ ";

bool contains(std::string_view words, std::string_view word) {
  for (size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1))
    if (words[at - 1] == ' ' && words[at + word.size()] == ' ') return true;
  return false;
}

}  // namespace

OperandUse OperatorRule::use_of(size_t argument) const {
  switch (uses[std::min(argument, uses.size() - 1)]) {
    case 'a':
      return OperandUse::kAdded;
    case 'f':
      return OperandUse::kMultiplied;
    case 'n':
      return OperandUse::kNonlinear;
    default:
      return OperandUse::kCarried;
  }
}

OperatorRule operator_rule(std::string_view name, std::string_view overload) {
  if (const size_t scope = name.rfind("::"); scope != std::string_view::npos) name.remove_prefix(scope + 2);
  OperatorRule rule;
  rule.makes_constants = contains(kConstants, name);
  rule.in_place = name.ends_with('_') && !name.starts_with("__");
  rule.reads_first = !contains(kOverwriting, name);
  if (rule.in_place) name.remove_suffix(1);
  for (const Family& family : kFamilies)
    if (contains(family.operators, name)) rule.uses = family.uses;
  rule.has_out = overload.find("out") != std::string_view::npos;
  if (rule.has_out) rule.in_place = false;
  return rule;
}

}  // namespace ranklab
