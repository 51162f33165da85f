// The quantization of one operand of a matrix product: its number format, which elements share a scale, how the scale
// follows from their amax, and how numbers are rounded. Torch-free. Thread rule: plain data.
#pragma once
#include <cstdint>
#include <string_view>

#include "core/precision/number_format.h"

namespace ranklab {

// Which elements share a scale. "Along" means along the dimension that the product sums over.
enum class Granularity {
  kTensor,  // all elements
  kRow,     // all elements along the summed dimension
  kTile,    // 1 x block along the summed dimension: DeepSeek-V3's activations, MX and NVFP4 blocks
  kBlock,   // block x block: DeepSeek-V3's weights
};

// How the scale, by which codes are multiplied, follows from a group's amax.
enum class ScaleRule {
  kFp32,         // amax / largest
  kPowerOfTwo,   // the same, rounded up to a power of two
  kE8M0,         // 2 ^ (floor(log2 amax) - exponent of largest), in E8M0: OCP MX, arXiv 2310.10537
  kE8M0Up,       // kPowerOfTwo in E8M0: nothing saturates; arXiv 2506.08027
  kE4M3,         // amax / largest in E4M3 relative to an fp32 scale of the whole tensor: NVFP4, arXiv 2509.25149
  kDelayedFp32,  // kFp32 of the amax of past steps: Transformer Engine's delayed scaling; whole tensors only
};

enum class Rounding { kNearest, kStochastic };  // nearest: ties to even

struct TensorPrecision {
  const NumberFormat* format = nullptr;  // null: not quantized
  Granularity granularity = Granularity::kTensor;
  int64_t block = 0;  // block size of kTile and kBlock
  ScaleRule scale = ScaleRule::kFp32;
  Rounding rounding = Rounding::kNearest;

  bool quantized() const { return format != nullptr; }
  bool operator==(const TensorPrecision&) const = default;
};

std::string_view name(Granularity granularity);  // "tensor", "row", "tile", "block"
std::string_view name(ScaleRule rule);           // "fp32", "power_of_two", "e8m0", "e8m0_up", "e4m3", "delayed"
std::string_view name(Rounding rounding);        // "nearest", "stochastic"

// The size of tiles and blocks for which a GPU's FP8 product takes scales, and whether a tensor's scales have this
// form.
constexpr int64_t kScaledGroup = 128;
bool has_scaled_groups(const TensorPrecision& precision);

// The precision in which a product is summed.
enum class SumPrecision {
  kFp32,
  kHopper,          // 14 bits, as in Hopper's tensor cores for FP8: DeepSeek-V3, arXiv 2412.19437, section 3.5.2
  kHopperPromoted,  // the same, but added to an fp32 sum every 128 products
};
std::string_view name(SumPrecision sum);  // "fp32", "hopper", "hopper_promoted"

// The three products of a linear layer y = x W^T: y from x and W, dx from dy and W, dW from dy and x.
struct LinearPrecision {
  TensorPrecision activation;  // x
  TensorPrecision weight;      // W
  TensorPrecision gradient;    // dy
  // dW uses x as quantized for y, then quantized a second time (DeepSeek-V3 keeps x in 8 bits), not x itself.
  bool requantize_activation = false;
  // Both operands of dW get a random Hadamard transform of size 16 along tokens before rounding (NVFP4).
  bool hadamard = false;
  SumPrecision sum = SumPrecision::kFp32;

  bool quantized() const { return activation.quantized() || weight.quantized() || gradient.quantized(); }
  bool operator==(const LinearPrecision&) const = default;
};

// Whether any scale is made from the amax of past steps.
bool scales_are_delayed(const LinearPrecision& linear);

}  // namespace ranklab
