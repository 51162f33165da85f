#include "core/parallel/quantized/scaled_product.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/nn/gemm.h"
#include "core/parallel/quantized/device_operand.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

constexpr int kFirstTensorWise = 89, kFirstRowWise = 90, kHopper = 90;
constexpr int64_t kMultiple = 16;  // required of every dimension: 16 bytes, cuBLAS's alignment

bool codes(const TensorPrecision& p) {
  return p.quantized() && p.format->bits() == kCodeBits && p.rounding == Rounding::kNearest;
}
bool is_e4m3(const TensorPrecision& p) { return p.format->name == "e4m3"; }

bool in_groups(const TensorPrecision& p) {
  return (p.granularity == Granularity::kTile || p.granularity == Granularity::kBlock) && p.block == kScaledGroup &&
         p.scale != ScaleRule::kE4M3;
}

// Rows of scales of squares begin at multiples of 16 bytes, four scales.
bool groups_fit(const TensorPrecision& left, const TensorPrecision& right, int64_t k) {
  const bool squares = left.granularity == Granularity::kBlock || right.granularity == Granularity::kBlock;
  const bool both = left.granularity == Granularity::kBlock && right.granularity == Granularity::kBlock;
  return !both && k % (squares ? 4 * kScaledGroup : kScaledGroup) == 0;
}

// The scales of the groups of an operand [rows, K], however it lies: tiles [rows, K/128] column-major, squares
// [rows/128, K/128] row-major.
at::Tensor group_scales(const CodedSide& side) {
  const OperandPiece& whole = side.operand.pieces.at(0);
  const at::Tensor grid =
      side.operand.device_scales.view({whole.groups.grid_rows(whole.rows), whole.groups.grid_cols(whole.cols)});
  const bool tiles = side.precision.granularity == Granularity::kTile;
  if (side.operand.k_first()) return tiles ? grid.t() : grid.t().contiguous();
  return tiles ? grid.t().contiguous().t() : grid;
}

// Products of groups move to fp32 at the end of each group, for its scales.
void check_sum(SumPrecision sum, ScaledMmForm form, int capability) {
  if (sum == SumPrecision::kFp32) return;
  const bool by_groups = form == ScaledMmForm::kGroupWise && sum == SumPrecision::kHopperPromoted;
  const bool wholly = form == ScaledMmForm::kTensorWise || form == ScaledMmForm::kRowWise;
  RANKLAB_CHECK((by_groups || wholly) && capability == kHopper, ErrorKind::kInvalidArgument, .where = "FP8 products",
                .what = "sums in 14 bits are those of Hopper's FP8 units",
                .got = form == ScaledMmForm::kNone
                           ? "a product that these units do not compute"
                           : strprintf("a GPU of compute capability %d.%d", capability / 10, capability % 10),
                .want = "compute capability 9.0, and sizes that are multiples of 16",
                .fix = "use --fp8-accumulation fp32");
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
  if (in_groups(left) && in_groups(right) && groups_fit(left, right, k) && capability == kScalesGroups)
    return ScaledMmForm::kGroupWise;
  if (left.granularity != right.granularity) return ScaledMmForm::kNone;
  if (left.granularity == Granularity::kTensor && capability >= kFirstTensorWise) return ScaledMmForm::kTensorWise;
  if (left.granularity == Granularity::kRow && is_e4m3(left) && is_e4m3(right) && capability >= kFirstRowWise)
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
  ScaledMmForm form = ScaledMmForm::kNone;
  if (left.operand.codes.defined() && right.operand.codes.defined()) {
    const at::Tensor &a = left.operand.codes, &b = right.operand.codes;
    form = scaled_mm_form(left.precision, right.precision, a.size(0), a.size(1), b.size(0), capability);
  }
  check_sum(sum, form, capability);
  if (form != ScaledMmForm::kNone) return scaled_product(left, right, form, type, sum);
  const at::ScalarType product_type = type == at::kBFloat16 ? at::kBFloat16 : at::kFloat;
  const auto k_last = [&](const CodedSide& side) {
    const at::Tensor values = values_of(side.operand).to(product_type);
    return side.operand.k_first() ? values.t() : values;
  };
  return gemm(k_last(left), k_last(right).t()).to(type);
}

}  // namespace ranklab
