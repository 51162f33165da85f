#include "core/parallel/quantized/scaled_product.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/nn/gemm.h"
#include "core/parallel/quantized/device_operand.h"
#include "core/precision/recipe.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

constexpr int kFirstTensorWise = 89;
constexpr int64_t kMultiple = 16;  // required of every dimension: 16 bytes, cuBLAS's alignment

bool codes(const TensorPrecision& p) {
  return p.quantized() && p.format->bits() == kCodeBits && p.rounding == Rounding::kNearest;
}
bool is_e4m3(const TensorPrecision& p) { return p.format == e4m3(); }

// Rows of square scales must begin at multiples of 16 bytes, which is four scales.
bool groups_fit(const TensorPrecision& left, const TensorPrecision& right, int64_t k) {
  const bool squares = left.granularity == Granularity::kBlock || right.granularity == Granularity::kBlock;
  const bool both = left.granularity == Granularity::kBlock && right.granularity == Granularity::kBlock;
  return !both && k % (squares ? 4 * kScaledGroup : kScaledGroup) == 0;
}

// The group scales of an operand [rows, K], however the operand is stored: tiles [rows, K/128] column-major, squares
// [rows/128, K/128] row-major.
at::Tensor group_scales(const CodedSide& side) {
  const OperandPiece& whole = side.operand.pieces.at(0);
  const at::Tensor grid =
      side.operand.device_scales.view({whole.groups.grid_rows(whole.rows), whole.groups.grid_cols(whole.cols)});
  const bool tiles = side.precision.granularity == Granularity::kTile;
  if (side.operand.k_first()) return tiles ? grid.t() : grid.t().contiguous();
  return tiles ? grid.t().contiguous().t() : grid;
}

// Whether the GPU sums like this. Products of groups move to fp32 at the end of each group, because its scale is
// applied there.
bool sums_so(SumPrecision sum, ScaledMmForm form, int capability) {
  if (sum == SumPrecision::kFp32) return true;
  if (capability != kHopperCapability) return false;
  const bool wholly = form == ScaledMmForm::kTensorWise || form == ScaledMmForm::kRowWise;
  return wholly || (form == ScaledMmForm::kGroupWise && sum == SumPrecision::kHopperPromoted);
}

}  // namespace

ScaledMmForm scaled_mm_form(const TensorPrecision& left, const TensorPrecision& right, int64_t m, int64_t k, int64_t n,
                            int capability) {
  if (!codes(left) || !codes(right)) return ScaledMmForm::kNone;
  for (const int64_t length : {m, k, n}) {
    if (length == 0 || length % kMultiple != 0) return ScaledMmForm::kNone;
  }
  // FP8 units do not multiply E5M2 with E5M2.
  if (!is_e4m3(left) && !is_e4m3(right)) return ScaledMmForm::kNone;
  if (has_scaled_groups(left) && has_scaled_groups(right) && groups_fit(left, right, k) &&
      capability == kHopperCapability)
    return ScaledMmForm::kGroupWise;
  if (left.granularity != right.granularity) return ScaledMmForm::kNone;
  if (left.granularity == Granularity::kTensor && capability >= kFirstTensorWise) return ScaledMmForm::kTensorWise;
  if (left.granularity == Granularity::kRow && is_e4m3(left) && is_e4m3(right) && capability >= kHopperCapability)
    return ScaledMmForm::kRowWise;
  return ScaledMmForm::kNone;
}

ScaledMmOperands scaled_mm_operands(const CodedSide& left, const CodedSide& right, ScaledMmForm form,
                                    at::ScalarType type) {
  const at::Tensor a = left.operand.codes, b = right.operand.codes.t();
  switch (form) {
    case ScaledMmForm::kGroupWise:
      return {a, b, group_scales(left), group_scales(right).t(), type};
    case ScaledMmForm::kRowWise:
      return {a, b, left.operand.device_scales.view({-1, 1}), right.operand.device_scales.view({1, -1}), at::kBFloat16};
    case ScaledMmForm::kTensorWise:
    case ScaledMmForm::kNone:
      break;
  }
  return {a, b, left.operand.device_scales.reshape(at::IntArrayRef{}),
          right.operand.device_scales.reshape(at::IntArrayRef{}), type};
}

at::Tensor scaled_product(const CodedSide& left, const CodedSide& right, ScaledMmForm form, at::ScalarType type,
                          SumPrecision sum) {
  const ScaledMmOperands o = scaled_mm_operands(left, right, form, type);
  return at::_scaled_mm(o.a, o.b, o.scale_a, o.scale_b, /*bias=*/{}, /*scale_result=*/{}, o.type,
                        /*use_fast_accum=*/sum == SumPrecision::kHopper)
      .to(type);
}

at::Tensor device_product(const CodedSide& left, const CodedSide& right, int capability, at::ScalarType type,
                          SumPrecision sum) {
  const int64_t m = rows_of(left.operand), k = depth_of(left.operand), n = rows_of(right.operand);
  const bool coded = left.operand.codes.defined() && right.operand.codes.defined();
  const ScaledMmForm form =
      coded ? scaled_mm_form(left.precision, right.precision, m, k, n, capability) : ScaledMmForm::kNone;
  RANKLAB_CHECK(
      sums_so(sum, form, capability), ErrorKind::kInvalidArgument, .where = "FP8 products",
      .what = "sums in 14 bits are those of the FP8 units of GPUs of compute capability 9.0",
      .got = strprintf("compute capability %d.%d, a product of %lld x %lld over %lld", capability / 10, capability % 10,
                       static_cast<long long>(m), static_cast<long long>(n), static_cast<long long>(k)),
      .want =
          "9.0, and sizes that are multiples of 16 (with scales of tiles: over a multiple of 128, with "
          "squares of 512)",
      .fix = "use --fp8-accumulation fp32");
  if (form != ScaledMmForm::kNone) return scaled_product(left, right, form, type, sum);
  const at::ScalarType product_type = type == at::kBFloat16 ? at::kBFloat16 : at::kFloat;
  const auto k_last = [&](const CodedSide& side) {
    const at::Tensor values = values_of(side.operand).to(product_type);
    return side.operand.k_first() ? values.t() : values;
  };
  return gemm(k_last(left), k_last(right).t()).to(type);
}

}  // namespace ranklab
