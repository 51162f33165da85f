#include "core/sim/op_class.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/function_schema.h>

#include <array>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace ranklab {
namespace {

struct Row {
  OpKind kind;
  std::array<const char*, 4> args = {nullptr, nullptr, nullptr, nullptr};  // names of first, second, third, flag
};

// Base names (namespace and in-place underscore removed). GEMMs and attention name the arguments that carry the work.
const std::unordered_map<std::string_view, Row>& special_rows() {
  static const std::unordered_map<std::string_view, Row> rows = {
      {"mm", {OpKind::kMatmul, {"self", "mat2"}}},
      {"bmm", {OpKind::kMatmul, {"self", "mat2"}}},
      {"_int_mm", {OpKind::kMatmul, {"self", "mat2"}}},
      {"_scaled_mm", {OpKind::kMatmul, {"self", "mat2"}}},
      {"addmm", {OpKind::kMatmul, {"mat1", "mat2"}}},
      {"_addmm_activation", {OpKind::kMatmul, {"mat1", "mat2"}}},
      {"baddbmm", {OpKind::kMatmul, {"batch1", "batch2"}}},
      {"addbmm", {OpKind::kMatmul, {"batch1", "batch2"}}},
      {"mv", {OpKind::kMatmul, {"self", "vec"}}},
      {"addmv", {OpKind::kMatmul, {"mat", "vec"}}},
      {"dot", {OpKind::kMatmul, {"self", "tensor"}}},
      {"vdot", {OpKind::kMatmul, {"self", "other"}}},
      {"_scaled_dot_product_flash_attention_for_cpu", {OpKind::kAttention, {"query", "key", "value", "is_causal"}}},
      {"_scaled_dot_product_flash_attention", {OpKind::kAttention, {"query", "key", "value", "is_causal"}}},
      {"_scaled_dot_product_efficient_attention", {OpKind::kAttention, {"query", "key", "value", "is_causal"}}},
      {"_scaled_dot_product_cudnn_attention", {OpKind::kAttention, {"query", "key", "value", "is_causal"}}},
      {"_scaled_dot_product_flash_attention_for_cpu_backward",
       {OpKind::kAttentionBackward, {"query", "key", "value", "is_causal"}}},
      {"_scaled_dot_product_flash_attention_backward",
       {OpKind::kAttentionBackward, {"query", "key", "value", "is_causal"}}},
      {"_scaled_dot_product_efficient_attention_backward",
       {OpKind::kAttentionBackward, {"query", "key", "value", "is_causal"}}},
      {"_scaled_dot_product_cudnn_attention_backward",
       {OpKind::kAttentionBackward, {"query", "key", "value", "is_causal"}}},
      {"convolution", {OpKind::kConvolution, {"input", nullptr, "weight", "transposed"}}},
      {"convolution_backward", {OpKind::kConvolutionBackward, {"grad_output", "input", "weight", "transposed"}}},
      {"_fused_adamw", {OpKind::kFusedAdamW}},
      {"_fused_adam", {OpKind::kFusedAdamW}},
      {"embedding", {OpKind::kGather}},
      {"index_select", {OpKind::kGather}},
      {"index", {OpKind::kGather}},
      {"gather", {OpKind::kGather}},
      {"index_add", {OpKind::kScatter}},
      {"index_copy", {OpKind::kScatter}},
      {"index_put", {OpKind::kScatter}},
      {"_index_put_impl", {OpKind::kScatter}},
      {"scatter", {OpKind::kScatter}},
      {"scatter_add", {OpKind::kScatter}},
      {"scatter_reduce", {OpKind::kScatter}},
  };
  return rows;
}

// Operators without a GPU kernel, although the schema does not show it: allocations, in-place metadata changes, host
// reads.
bool is_free_name(std::string_view base) {
  static const std::unordered_set<std::string_view> names = {"as_strided",
                                                             "squeeze",
                                                             "unsqueeze",
                                                             "t",
                                                             "transpose",
                                                             "detach",
                                                             "swapdims",
                                                             "swapaxes",
                                                             "resize",
                                                             "resize_as",
                                                             "_resize_output",
                                                             "set",
                                                             "_unsafe_view",
                                                             "unsafe_split",
                                                             "set_data",
                                                             "unsafe_chunk",
                                                             "unsafe_split_with_sizes",
                                                             "_local_scalar_dense",
                                                             "_efficientzerotensor",
                                                             "record_stream"};
  return names.contains(base) || base.starts_with("empty") || base.starts_with("new_empty");
}

// Operators that overwrite their first argument without reading it.
bool overwrites_self(std::string_view base) {
  static const std::unordered_set<std::string_view> names = {
      "copy", "fill", "zero", "normal", "uniform", "random", "bernoulli", "exponential", "geometric"};
  return names.contains(base);
}

bool holds_tensors(const c10::Argument& argument) {
  const auto kind = argument.type()->kind();
  if (kind == c10::TypeKind::ListType || kind == c10::TypeKind::OptionalType) {
    return argument.type()->str().find("Tensor") != std::string::npos;
  }
  return kind == c10::TypeKind::TensorType;
}

void fill_masks(const c10::FunctionSchema& schema, std::string_view base, bool in_place, OpClass& out) {
  const auto& arguments = schema.arguments();
  for (size_t i = 0; i < arguments.size() && i < 64; ++i) {
    if (!holds_tensors(arguments[i])) continue;
    const uint64_t bit = uint64_t{1} << i;
    const bool written = arguments[i].alias_info() != nullptr && arguments[i].alias_info()->isWrite();
    if (written) out.write_args |= bit;
    if (!arguments[i].is_out() && !(i == 0 && in_place && overwrites_self(base))) out.read_args |= bit;
  }
}

bool returns_a_view(const c10::FunctionSchema& schema) {
  if (schema.returns().empty()) return false;
  const c10::AliasInfo* alias = schema.returns()[0].alias_info();
  return alias != nullptr && !alias->isWrite();
}

int8_t argument_index(const c10::FunctionSchema& schema, const char* name) {
  if (name == nullptr) return -1;
  const std::optional<int> index = schema.argumentIndexWithName(name);
  return index ? static_cast<int8_t>(*index) : int8_t{-1};
}

void apply_row(const c10::FunctionSchema& schema, const Row& row, OpClass& out) {
  out.kind = row.kind;
  out.closed = true;
  out.first = argument_index(schema, row.args[0]);
  out.second = argument_index(schema, row.args[1]);
  out.third = argument_index(schema, row.args[2]);
  out.flag = argument_index(schema, row.args[3]);
  out.mask = argument_index(schema, "output_mask");
}

bool returns_tensors(const c10::FunctionSchema& schema) {
  for (const c10::Argument& result : schema.returns()) {
    if (holds_tensors(result)) return true;
  }
  return false;
}

}  // namespace

OpClass classify(const std::string& name, const std::string& overload) {
  OpClass out;
  const auto handle = c10::Dispatcher::singleton().findSchema({name, overload});
  if (!handle) {
    out.kind = OpKind::kComposite;
    return out;
  }
  const c10::FunctionSchema& schema = handle->schema();
  std::string_view base = name;
  base = base.substr(base.find("::") == std::string_view::npos ? 0 : base.find("::") + 2);
  const bool in_place = base.ends_with('_') && !base.ends_with("__");
  if (in_place) base.remove_suffix(1);
  out.copies = in_place && base == "copy";
  fill_masks(schema, base, in_place, out);
  if (returns_a_view(schema) || is_free_name(base) || (!returns_tensors(schema) && out.write_args == 0)) {
    out.kind = OpKind::kFree;
  } else if (const auto row = special_rows().find(base); row != special_rows().end()) {
    apply_row(schema, row->second, out);
  } else if (handle->hasKernelForDispatchKey(c10::DispatchKey::CPU) || base.starts_with("_foreach_")) {
    out.closed = true;  // CPU kernels call small operators (casts of scalars, fills) where a GPU has a single kernel
  } else if (handle->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd)) {
    out.kind = OpKind::kComposite;
  }
  return out;
}

}  // namespace ranklab
