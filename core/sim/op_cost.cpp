#include "core/sim/op_cost.h"

#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>

namespace ranklab {
namespace {

using Inputs = c10::ArrayRef<const c10::IValue>;

double bytes_of(const c10::IValue& value) {
  if (value.isTensor()) return stored_bytes(value.toTensor());
  double sum = 0;
  if (value.isTensorList()) {
    const c10::List<at::Tensor> list = value.toTensorList();
    for (size_t i = 0; i < list.size(); ++i) sum += stored_bytes(list.get(i));
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) sum += bytes_of(element);
  }
  return sum;
}

double bytes_of(Inputs inputs, uint64_t mask) {
  double sum = 0;
  for (size_t i = 0; i < inputs.size() && i < 64; ++i) {
    if ((mask >> i & 1) != 0) sum += bytes_of(inputs[i]);
  }
  return sum;
}

const at::Tensor* tensor_at(Inputs inputs, int index) {
  if (index < 0 || static_cast<size_t>(index) >= inputs.size()) return nullptr;
  const c10::IValue& value = inputs[static_cast<size_t>(index)];
  if (!value.isTensor() || !value.toTensor().defined()) return nullptr;
  return &value.toTensor();
}

bool flag_at(Inputs inputs, int index) {
  return index >= 0 && static_cast<size_t>(index) < inputs.size() && inputs[static_cast<size_t>(index)].isBool() &&
         inputs[static_cast<size_t>(index)].toBool();
}

double elements(const at::Tensor& tensor) { return static_cast<double>(tensor.numel()); }

DType first_dtype(Inputs inputs) {
  for (const c10::IValue& value : inputs) {
    if (value.isTensor() && value.toTensor().defined()) return dtype_of(value.toTensor().scalar_type());
  }
  return DType::kFloat32;
}

void add_matmul(const OpClass& op, Inputs inputs, OpCost& cost) {
  const at::Tensor* a = tensor_at(inputs, op.first);
  const at::Tensor* b = tensor_at(inputs, op.second);
  if (a == nullptr || b == nullptr) return;
  const double columns = b->dim() >= 2 ? static_cast<double>(b->size(-1)) : 1.0;
  cost.flops = 2 * elements(*a) * columns;
  const double inner = a->dim() >= 1 ? static_cast<double>(std::max<int64_t>(a->size(-1), 1)) : 1.0;
  const double batches = a->dim() == 3 && b->dim() == 3 ? static_cast<double>(std::max<int64_t>(a->size(0), 1)) : 1.0;
  cost.shape = KernelShape::product(elements(*a) / inner / batches, columns, inner, batches);
  cost.dtype = dtype_of(a->scalar_type());
}

// q [B, H, S, D], k [B, H, T, D], v [B, H, T, E]: 2 B H S T (D + E), half of it when causal.
void add_attention(const OpClass& op, Inputs inputs, OpCost& cost) {
  const at::Tensor* q = tensor_at(inputs, op.first);
  const at::Tensor* k = tensor_at(inputs, op.second);
  const at::Tensor* v = tensor_at(inputs, op.third);
  if (q == nullptr || k == nullptr || v == nullptr) return;
  const double rows = elements(*q) / static_cast<double>(std::max<int64_t>(q->size(-1), 1));
  double flops = 2 * rows * static_cast<double>(k->size(-2)) * static_cast<double>(q->size(-1) + v->size(-1));
  if (flag_at(inputs, op.flag)) flops /= 2;
  cost.flops = flops;
  const double keys = static_cast<double>(k->size(-2)) * (flag_at(inputs, op.flag) ? 0.5 : 1.0);
  cost.shape = KernelShape::attention(rows, keys, static_cast<double>(q->size(-1)));
  if (op.kind == OpKind::kAttentionBackward) {
    cost.shape = cost.shape.of_backward();
    cost.flops = 2.5 * flops;  // dv, dp, dq, dk, and the recomputed scores
    cost.recomputed_flops = 0.5 * flops;
  }
  cost.dtype = dtype_of(q->scalar_type());
}

void add_convolution(const OpClass& op, Inputs inputs, OpCost& cost) {
  const at::Tensor* first = tensor_at(inputs, op.first);
  const at::Tensor* weight = tensor_at(inputs, op.third);
  if (first == nullptr || weight == nullptr || weight->numel() == 0) return;
  cost.dtype = dtype_of(weight->scalar_type());
  const double per_element = 2 * elements(*weight) / static_cast<double>(weight->size(0));
  const bool transposed = flag_at(inputs, op.flag);
  if (op.kind == OpKind::kConvolution) {
    if (transposed) cost.flops = per_element * elements(*first);
    if (!transposed) cost.flops_per_output = per_element;
    return;
  }
  const at::Tensor* input = tensor_at(inputs, op.second);
  if (input == nullptr || op.mask < 0) return;
  const c10::List<bool> mask = inputs[static_cast<size_t>(op.mask)].toBoolList();
  const int wanted = static_cast<int>(mask.get(0)) + static_cast<int>(mask.get(1));
  cost.flops = wanted * per_element * elements(transposed ? *input : *first);
}

// Lists of parameters, gradients and moments, of any dtype: reads all four, writes back all but the gradient.
void add_adamw(Inputs inputs, OpCost& cost) {
  if (inputs.size() < 4) return;
  const double weights = bytes_of(inputs[0]), grads = bytes_of(inputs[1]),
               moments = bytes_of(inputs[2]) + bytes_of(inputs[3]);
  cost.bytes = 2 * weights + grads + 2 * moments;
  cost.written_bytes = 0;
}

}  // namespace

DType dtype_of(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Float:
      return DType::kFloat32;
    case c10::ScalarType::Double:
      return DType::kFloat64;
    case c10::ScalarType::BFloat16:
      return DType::kBFloat16;
    case c10::ScalarType::Half:
      return DType::kFloat16;
    case c10::ScalarType::Float8_e4m3fn:
    case c10::ScalarType::Float8_e5m2:
      return DType::kFloat8;
    case c10::ScalarType::Long:
      return DType::kInt64;
    case c10::ScalarType::Int:
      return DType::kInt32;
    case c10::ScalarType::Byte:
      return DType::kUInt8;
    case c10::ScalarType::Bool:
      return DType::kBool;
    default:
      return DType::kOther;
  }
}

double stored_bytes(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.unsafeGetTensorImpl()->has_storage()) return 0;
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) return 0;  // a scalar argument is part of the launch
  const auto sizes = tensor.sizes();
  const auto strides = tensor.strides();
  double count = 1;
  for (size_t i = 0; i < sizes.size(); ++i)
    count *= strides[i] == 0 && sizes[i] > 0 ? 1.0 : static_cast<double>(sizes[i]);
  return count * static_cast<double>(tensor.element_size());
}

CopyCharge copy_charge(StoredAs to, StoredAs from) {
  const auto is_pair = [](c10::DeviceType a, c10::DeviceType b) {
    return a == c10::DeviceType::CPU && (b == c10::DeviceType::CUDA || b == c10::DeviceType::Meta);
  };
  if (!is_pair(to.device, from.device) && !is_pair(from.device, to.device)) return CopyCharge::kAsOperators;
  return to.type == from.type ? CopyCharge::kFree : CopyCharge::kConversion;
}

OpCost cost_at_start(const OpClass& op, Inputs inputs) {
  OpCost cost;
  cost.dtype = first_dtype(inputs);
  if (op.kind == OpKind::kFree || op.kind == OpKind::kComposite) return cost;
  cost.bytes = bytes_of(inputs, op.read_args);
  cost.written_bytes = bytes_of(inputs, op.write_args);
  if (op.kind == OpKind::kMatmul) add_matmul(op, inputs, cost);
  if (op.kind == OpKind::kAttention || op.kind == OpKind::kAttentionBackward) add_attention(op, inputs, cost);
  if (op.kind == OpKind::kConvolution || op.kind == OpKind::kConvolutionBackward) add_convolution(op, inputs, cost);
  if (op.kind == OpKind::kFusedAdamW) add_adamw(inputs, cost);
  if (op.kind == OpKind::kGather || op.kind == OpKind::kScatter) {
    // Only the addressed part of the first argument is moved: gather reads as much as it returns, and scatter reads and
    // rewrites as much as it is given.
    const double table = inputs.empty() ? 0 : bytes_of(inputs[0]);
    cost.bytes = std::max(0.0, cost.bytes - table);
    if (op.kind == OpKind::kScatter) {
      const at::Tensor* last = nullptr;
      for (size_t i = 1; i < inputs.size(); ++i) {
        const at::Tensor* tensor = tensor_at(inputs, static_cast<int>(i));
        if (tensor != nullptr) last = tensor;
      }
      cost.bytes += last != nullptr ? 2 * stored_bytes(*last) : 0;
    }
  }
  return cost;
}

bool in_backward_formula() {
  constexpr int kNoGraphTask = -1;
  return torch::autograd::get_current_graph_task_id() != kNoGraphTask && !at::GradMode::is_enabled();
}

void add_outputs(const OpClass& op, c10::ArrayRef<const c10::IValue> outputs, OpCost& cost) {
  double returned = 0;
  for (const c10::IValue& output : outputs) returned += bytes_of(output);
  if (op.kind == OpKind::kScatter) {
    // An out-of-place scatter copies the whole table first.
    const bool has_data = outputs.empty() || !outputs[0].isTensor() || !outputs[0].toTensor().is_meta();
    if (op.write_args == 0 && (has_data || !in_backward_formula())) cost.bytes += 2 * returned;
  } else if (op.kind == OpKind::kGather) {
    cost.bytes += 2 * returned;
  } else {
    cost.bytes += returned > 0 ? returned : cost.written_bytes;
  }
  if (cost.flops_per_output > 0 && !outputs.empty() && outputs[0].isTensor()) {
    cost.flops += cost.flops_per_output * elements(outputs[0].toTensor());
  }
}

}  // namespace ranklab
