// How one tensor is held in a matrix product: in which number format, which of its elements share a scale, how the
// scale follows from their largest magnitude, and how numbers are rounded. Torch-free. Thread rule: plain data.
#pragma once
#include <cstdint>
#include <string_view>

#include "core/precision/number_format.h"

namespace ranklab {

// Which elements share a scale. "Along" is the dimension that the product sums over.
enum class Granularity {
  kTensor,  // all of them
  kRow,     // all along
  kTile,    // 1 x block along: DeepSeek-V3's activations, MX and NVFP4 blocks
  kBlock,   // block x block: DeepSeek-V3's weights
};

// What the largest magnitude of a group makes of the number that its codes are multiplied with.
enum class ScaleRule {
  kFp32,         // amax / largest
  kPowerOfTwo,   // the same, up to the next power of two
  kE8M0,         // 2 ^ (floor(log2 amax) - exponent of largest), in E8M0: OCP MX, arXiv 2310.10537
  kE8M0Up,       // kPowerOfTwo in E8M0: nothing saturates; arXiv 2506.08027
  kE4M3,         // amax / largest in E4M3 relative to an fp32 scale of the whole tensor: NVFP4, arXiv 2509.25149
  kDelayedFp32,  // kFp32 of the amax of past steps: Transformer Engine's delayed scaling; whole tensors only
};

enum class Rounding { kNearest, kStochastic };  // nearest: ties to even

struct TensorPrecision {
  const NumberFormat* format = nullptr;  // null: as it is
  Granularity granularity = Granularity::kTensor;
  int64_t block = 0;  // of kTile and kBlock
  ScaleRule scale = ScaleRule::kFp32;
  Rounding rounding = Rounding::kNearest;

  bool quantized() const { return format != nullptr; }
  bool operator==(const TensorPrecision&) const = default;
};

std::string_view name(Granularity granularity);  // "tensor", "row", "tile", "block"
std::string_view name(ScaleRule rule);           // "fp32", "power_of_two", "e8m0", "e8m0_up", "e4m3", "delayed"
std::string_view name(Rounding rounding);        // "nearest", "stochastic"

// How a product's sums are kept.
enum class SumPrecision {
  kFp32,            // exactly, as far as fp32 goes
  kHopper,          // 14 bits, as the tensor cores of Hopper do for FP8: DeepSeek-V3, arXiv 2412.19437, section 3.5.2
  kHopperPromoted,  // the same, moved to fp32 every 128 products
};
std::string_view name(SumPrecision sum);  // "fp32", "hopper", "hopper_promoted"

// The three products of a linear layer y = x W^T: y from x and W, dx from dy and W, dW from dy and x.
struct LinearPrecision {
  TensorPrecision activation;  // x
  TensorPrecision weight;      // W
  TensorPrecision gradient;    // dy
  // dW sees x as y saw it, rounded a second time (DeepSeek-V3 keeps x in 8 bits), not x itself.
  bool requantize_activation = false;
  // dW's two sides are turned by a random Hadamard matrix of 16 along tokens before rounding (NVFP4).
  bool hadamard = false;
  SumPrecision sum = SumPrecision::kFp32;

  bool quantized() const { return activation.quantized() || weight.quantized() || gradient.quantized(); }
  bool operator==(const LinearPrecision&) const = default;
};

// Whether a tensor's scale is made of past steps.
bool scales_are_delayed(const LinearPrecision& linear);

}  // namespace ranklab
