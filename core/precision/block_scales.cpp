// block_scales(): one group at a time; the two-level scales of NVFP4 in vectors, since their groups are small and many.
#include "core/precision/block_scale.h"
#include "core/precision/scale_maker.h"
#include "core/precision/vector_lanes.h"

namespace ranklab {
namespace {

using Floats = VectorLanes::Float;
using Bits = VectorLanes::Bits;

BlockScale of(float scale) { return {scale, inverse_scale(scale)}; }

// make_scale() for one vector. OR-ing the bits of NaN in makes any number NaN.
RANKLAB_CLONES void relative_scales(const ScaleMaker& maker, const float* amax, float* scales, float* inverses) {
  const Floats size = load_lanes<Floats>(amax), zero = {};
  Floats scale = relative_scale<VectorLanes>(maker, size) * maker.whole;
  scale = size == zero ? zero + 1.0F : scale;
  const Bits not_finite = VectorLanes::bits(size) >= kFloatExponent ? Bits{} + kFloatNan : Bits{};
  scale = VectorLanes::number(VectorLanes::bits(scale) | not_finite);
  store_lanes(scale, scales);
  store_lanes(scale == zero ? zero : 1.0F / scale, inverses);
}

}  // namespace

void block_scales(const TensorPrecision& precision, std::span<const float> amax, float tensor_amax,
                  std::span<BlockScale> scales) {
  const ScaleMaker maker = scale_maker(precision, tensor_amax);
  size_t i = 0;
  if (maker.rule == ScaleMaker::Rule::kE4M3 && maker.whole - maker.whole == 0) {
    constexpr auto kStep = static_cast<size_t>(kLaneCount);
    for (; i + kStep <= amax.size(); i += kStep) {
      float scale[kStep], inverse[kStep];
      relative_scales(maker, amax.data() + i, scale, inverse);
      for (size_t lane = 0; lane < kStep; ++lane) scales[i + lane] = {scale[lane], inverse[lane]};
    }
  }
  const bool powers = maker.rule == ScaleMaker::Rule::kUp || maker.rule == ScaleMaker::Rule::kFloor;
  for (; i < amax.size(); ++i) {
    const uint32_t bits = OneLane::bits(amax[i]);
    if (powers && bits != 0 && bits < kFloatExponent) {
      const int32_t exponent = scale_exponent(maker, amax[i]);
      scales[i] = {power_of_two(exponent), power_of_two(-exponent)};
    } else {
      scales[i] = of(make_scale(maker, amax[i]));
    }
  }
}

}  // namespace ranklab
