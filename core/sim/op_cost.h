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
  double recomputed_flops = 0;  // part of flops that a model's FLOP count leaves out (flash attention's backward)
  double flops_per_output = 0;  // added per element of the first output, known when the op ends
  double bytes = 0;             // read, and written in place
  double written_bytes = 0;     // in place: counted unless the op returns its outputs
  DType dtype = DType::kFloat32;
  KernelShape shape = {};
};

DType dtype_of(c10::ScalarType type);
// Bytes of the elements a tensor stores: expanded dimensions count once.
double stored_bytes(const at::Tensor& tensor);

// What copy_ costs. Ranks with tensors in the host's memory copy nothing between it and a GPU's, and the virtual clock
// is the same wherever tensors are: such a copy is free, and with another type costs what the conversion does.
enum class CopyCharge : uint8_t { kAsOperators, kConversion, kFree };
struct StoredAs {
  c10::DeviceType device;
  c10::ScalarType type;
};
CopyCharge copy_charge(StoredAs to, StoredAs from);

OpCost cost_at_start(const OpClass& op, c10::ArrayRef<const c10::IValue> inputs);
void add_outputs(const OpClass& op, c10::ArrayRef<const c10::IValue> outputs, OpCost& cost);

}  // namespace ranklab
