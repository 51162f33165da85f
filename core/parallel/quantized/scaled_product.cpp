#include "core/parallel/quantized/scaled_product.h"

#include "core/nn/gemm.h"
#include "core/parallel/quantized/device_operand.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

constexpr int kFirstTensorWise = 89, kFirstRowWise = 90;
constexpr int64_t kMultiple = 16;  // required of every dimension: 16 bytes, cuBLAS's alignment

bool codes(const TensorPrecision& p) {
  return p.quantized() && p.format->bits() == kCodeBits && p.rounding == Rounding::kNearest;
}
bool is_e4m3(const TensorPrecision& p) { return p.format->name == "e4m3"; }

// [rows, K]
at::Tensor codes_of(const CodedSide& side) {
  return side.k_first ? side.operand.codes.t().contiguous() : side.operand.codes;
}
at::Tensor scales_of(const CodedSide& side) { return side.operand.device_scales; }

}  // namespace

ScaledMmForm scaled_mm_form(const TensorPrecision& left, const TensorPrecision& right, int64_t m, int64_t k, int64_t n,
                            int capability) {
  if (!codes(left) || !codes(right)) return ScaledMmForm::kNone;
  for (const int64_t length : {m, k, n}) {
    if (length == 0 || length % kMultiple != 0) return ScaledMmForm::kNone;
  }
  if (left.granularity != right.granularity) return ScaledMmForm::kNone;
  // FP8 units do not multiply E5M2 with E5M2.
  if (left.granularity == Granularity::kTensor && (is_e4m3(left) || is_e4m3(right)) && capability >= kFirstTensorWise)
    return ScaledMmForm::kTensorWise;
  if (left.granularity == Granularity::kRow && is_e4m3(left) && is_e4m3(right) && capability >= kFirstRowWise)
    return ScaledMmForm::kRowWise;
  return ScaledMmForm::kNone;
}

ScaledMmOperands scaled_mm_operands(const CodedSide& left, const CodedSide& right, ScaledMmForm form,
                                    at::ScalarType type) {
  ScaledMmOperands o{codes_of(left), codes_of(right).t(), scales_of(left), scales_of(right), type};
  if (form == ScaledMmForm::kRowWise) {
    o.scale_a = o.scale_a.view({-1, 1});
    o.scale_b = o.scale_b.view({1, -1});
    o.type = at::kBFloat16;
  } else {
    o.scale_a = o.scale_a.reshape(at::IntArrayRef{});
    o.scale_b = o.scale_b.reshape(at::IntArrayRef{});
  }
  return o;
}

at::Tensor scaled_product(const CodedSide& left, const CodedSide& right, ScaledMmForm form, at::ScalarType type) {
  const ScaledMmOperands o = scaled_mm_operands(left, right, form, type);
  return at::_scaled_mm(o.a, o.b, o.scale_a, o.scale_b, /*bias=*/{}, /*scale_result=*/{}, o.type,
                        /*use_fast_accum=*/false)
      .to(type);
}

at::Tensor device_product(const CodedSide& left, const CodedSide& right, int capability, at::ScalarType type) {
  if (left.operand.codes.defined() && right.operand.codes.defined()) {
    const at::Tensor &a = left.operand.codes, &b = right.operand.codes;
    const int along = left.k_first ? 0 : 1;
    const ScaledMmForm form = scaled_mm_form(left.precision, right.precision, a.size(1 - along), a.size(along),
                                             b.size(right.k_first ? 1 : 0), capability);
    if (form != ScaledMmForm::kNone) return scaled_product(left, right, form, type);
  }
  const at::ScalarType product_type = type == at::kBFloat16 ? at::kBFloat16 : at::kFloat;
  const auto k_last = [&](const CodedSide& side) {
    const at::Tensor values = values_of(side.operand).to(product_type);
    return side.k_first ? values.t() : values;
  };
  return gemm(k_last(left), k_last(right).t()).to(type);
}

}  // namespace ranklab
