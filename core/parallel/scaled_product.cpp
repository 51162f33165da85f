#include "core/parallel/scaled_product.h"

#include <ATen/ATen.h>

namespace ranklab {
namespace {

constexpr int kFirstTensorWise = 89, kFirstRowWise = 90, kCodeBits = 8;
constexpr int64_t kMultiple = 16;  // of every length: 16 bytes, cuBLAS's alignment

bool codes(const TensorPrecision& p) {
  return p.quantized() && p.format->bits() == kCodeBits && p.rounding == Rounding::kNearest;
}
bool is_e4m3(const TensorPrecision& p) { return p.format->name == "e4m3"; }

// [rows, K]
at::Tensor codes_of(const CodedSide& side) {
  return side.k_first ? side.operand.codes.t().contiguous() : side.operand.codes;
}
at::Tensor scales_of(const CodedSide& side) { return side.operand.device_scales.select(1, 0).contiguous(); }

}  // namespace

ScaledMmForm scaled_mm_form(const TensorPrecision& left, const TensorPrecision& right, int64_t m, int64_t k, int64_t n,
                            int capability) {
  if (!codes(left) || !codes(right)) return ScaledMmForm::kNone;
  for (const int64_t length : {m, k, n}) {
    if (length == 0 || length % kMultiple != 0) return ScaledMmForm::kNone;
  }
  if (left.granularity != right.granularity) return ScaledMmForm::kNone;
  // The units have no product of two E5M2.
  if (left.granularity == Granularity::kTensor && (is_e4m3(left) || is_e4m3(right)) && capability >= kFirstTensorWise)
    return ScaledMmForm::kTensorWise;
  if (left.granularity == Granularity::kRow && is_e4m3(left) && is_e4m3(right) && capability >= kFirstRowWise)
    return ScaledMmForm::kRowWise;
  return ScaledMmForm::kNone;
}

at::Tensor scaled_product(const CodedSide& left, const CodedSide& right, ScaledMmForm form, at::ScalarType type) {
  const at::Tensor a = codes_of(left), b = codes_of(right).t();
  at::Tensor scale_a = scales_of(left), scale_b = scales_of(right);
  if (form == ScaledMmForm::kRowWise) {
    scale_a = scale_a.view({-1, 1});
    scale_b = scale_b.view({1, -1});
    type = at::kBFloat16;
  }
  return at::_scaled_mm(a, b, scale_a, scale_b, /*bias=*/{}, /*scale_result=*/{}, type, /*use_fast_accum=*/false);
}

}  // namespace ranklab
