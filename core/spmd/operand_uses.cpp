#include "core/spmd/operand_uses.h"

#include <algorithm>
#include <array>

namespace ranklab {
namespace {

using Names = std::string_view;

constexpr std::array<Names, 8> kAdded = {"add",         "sub",          "rsub", "index_add",
                                         "scatter_add", "_foreach_add", "lerp", "index_put"};
constexpr std::array<Names, 12> kMultiplied = {"mul",    "div", "mm",      "bmm",     "matmul",      "addmm",
                                               "linear", "dot", "baddbmm", "addcmul", "_grouped_mm", "outer"};
constexpr std::array<Names, 38> kNonlinear = {"exp",
                                              "log",
                                              "sigmoid",
                                              "silu",
                                              "gelu",
                                              "tanh",
                                              "relu",
                                              "softmax",
                                              "_softmax",
                                              "log_softmax",
                                              "_log_softmax",
                                              "logsumexp",
                                              "pow",
                                              "sqrt",
                                              "rsqrt",
                                              "square",
                                              "abs",
                                              "amax",
                                              "amin",
                                              "max",
                                              "min",
                                              "maximum",
                                              "minimum",
                                              "sort",
                                              "topk",
                                              "native_layer_norm",
                                              "layer_norm",
                                              "rms_norm",
                                              "_fused_rms_norm",
                                              "clamp",
                                              "erf",
                                              "cross_entropy_loss",
                                              "scaled_dot_product_attention",
                                              "_scaled_dot_product_flash_attention_for_cpu",
                                              "_scaled_dot_product_flash_attention",
                                              "_scaled_dot_product_efficient_attention",
                                              "_scaled_dot_product_cudnn_attention",
                                              "reciprocal"};
constexpr std::array<Names, 7> kConstants = {"empty_like", "zeros_like", "ones_like", "full_like",
                                             "new_empty",  "new_zeros",  "new_full"};
constexpr std::array<Names, 3> kOverwriting = {"copy_", "fill_", "zero_"};

template <size_t N>
bool contains(const std::array<Names, N>& names, Names name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

OperatorRule operator_rule(std::string_view name, std::string_view overload) {
  if (const size_t scope = name.rfind("::"); scope != std::string_view::npos) name.remove_prefix(scope + 2);
  OperatorRule rule;
  rule.makes_constants = contains(kConstants, name);
  rule.in_place = name.ends_with('_') && !name.starts_with("__");
  rule.reads_first = !contains(kOverwriting, name);
  if (rule.in_place) name.remove_suffix(1);
  if (contains(kAdded, name)) rule.use = OperandUse::kAdded;
  if (contains(kMultiplied, name)) rule.use = OperandUse::kMultiplied;
  if (contains(kNonlinear, name)) rule.use = OperandUse::kNonlinear;
  if (overload.find("out") != std::string_view::npos) rule.in_place = false;
  return rule;
}

}  // namespace ranklab
