// FLOPs and bytes of one operator call, from its arguments. A multiply-add is two FLOPs. Causal attention counts half
// of the full square (the convention of FlashAttention, Dao 2023). A broadcast argument counts its stored elements, not
// the expanded ones. Thread rule: pure.
#pragma once
#include <ATen/core/ivalue.h>

#include <c10/core/DeviceType.h>

#include <cstdint>

#include "core/base/dtype.h"
#include "core/sim/kernel_shape.h"
#include "core/sim/op_class.h"

namespace ranklab {

struct OpCost {
  double flops = 0;
  double recomputed_flops = 0;  // part of `flops` that does not count as a model's FLOPs (flash attention's backward)
  double flops_per_output = 0;  // added per element of the first output, whose size is known when the op ends
  double bytes = 0;             // bytes read, and bytes written in place
  double written_bytes = 0;     // in place; counted unless the op returns its outputs
  DType dtype = DType::kFloat32;
  KernelShape shape = {};
};

DType dtype_of(c10::ScalarType type);
// Bytes of the elements that a tensor stores; expanded dimensions count once.
double stored_bytes(const at::Tensor& tensor);

// Whether one of LibTorch's backward formulas runs on this thread, and not a forward that is recomputed for it. The
// formula of a gather scatters in place, except that it does so out of place for tensors without data
// (areAnyTensorSubclassLike()), which are here to cost and to hold what tensors with data do.
bool in_backward_formula();

// What copy_ costs. Ranks whose tensors are in host memory do not copy between it and a GPU, or a tensor without data,
// and the virtual clock must be the same wherever tensors are; so such a copy is free, or, if it also converts the
// type, costs as much as the conversion.
enum class CopyCharge : uint8_t { kAsOperators, kConversion, kFree };
struct StoredAs {
  c10::DeviceType device;
  c10::ScalarType type;
};
CopyCharge copy_charge(StoredAs to, StoredAs from);

OpCost cost_at_start(const OpClass& op, c10::ArrayRef<const c10::IValue> inputs);
void add_outputs(const OpClass& op, c10::ArrayRef<const c10::IValue> outputs, OpCost& cost);

}  // namespace ranklab
