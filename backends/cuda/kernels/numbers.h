// Element types of device kernels: fp32, fp64, bf16 and fp16, in packs of 16 bytes where addresses allow. 16-bit values
// are widened to fp32 and rounded to nearest, ties to even, as in row_kernels_16bit.h. Compiles for a GPU and as plain
// C++17, so that a test runs the kernels' bodies in loops on a CPU. Cost: a pack is one load or store. Thread rule:
// pure except for what it writes.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define RANKLAB_BOTH __host__ __device__ __forceinline__
#else
#define RANKLAB_BOTH inline __attribute__((always_inline))
#endif
// Unrolling keeps arrays in registers, for which every index must be a constant, and lets several loads of a loop be in
// flight at once.
#ifdef __CUDA_ARCH__
#define RANKLAB_UNROLL _Pragma("unroll")
#define RANKLAB_UNROLL_4 _Pragma("unroll 4")
#else
#define RANKLAB_UNROLL
#define RANKLAB_UNROLL_4
#endif

namespace ranklab::rows {

struct Bf16 {
  uint16_t bits;
};
struct Fp16 {
  uint16_t bits;
};

// The type in which computations with T are done.
template <typename T>
struct WideOf {
  using Type = float;
};
template <>
struct WideOf<double> {
  using Type = double;
};
template <typename T>
using Wide = typename WideOf<T>::Type;

template <typename To, typename From>
RANKLAB_BOTH To same_bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

RANKLAB_BOTH float widened(float x) { return x; }
RANKLAB_BOTH double widened(double x) { return x; }
RANKLAB_BOTH float widened(Bf16 x) { return same_bits<float>(static_cast<uint32_t>(x.bits) << 16); }
RANKLAB_BOTH void round_to(float x, float& to) { to = x; }
RANKLAB_BOTH void round_to(double x, double& to) { to = x; }

// A GPU has instructions for these; a CPU uses integer arithmetic.
#ifdef __CUDA_ARCH__
RANKLAB_BOTH void round_to(float x, Bf16& to) { to.bits = __bfloat16_as_ushort(__float2bfloat16_rn(x)); }
RANKLAB_BOTH float widened(Fp16 x) { return __half2float(__ushort_as_half(x.bits)); }
RANKLAB_BOTH void round_to(float x, Fp16& to) { to.bits = __half_as_ushort(__float2half_rn(x)); }
#else
RANKLAB_BOTH void round_to(float x, Bf16& to) {
  const auto bits = same_bits<uint32_t>(x);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  to.bits = static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? 0x7fff : rounded);
}
RANKLAB_BOTH float widened(Fp16 x) {
  const uint32_t exponent = x.bits & 0x7c00, fraction = x.bits & 0x3ff;
  const float magnitude = exponent == 0        ? ldexpf(static_cast<float>(fraction), -24)
                          : exponent == 0x7c00 ? same_bits<float>(0x7f800000U | fraction << 13)
                                               : same_bits<float>((exponent + (112U << 10) + fraction) << 13);
  return (x.bits & 0x8000) != 0 ? -magnitude : magnitude;
}
RANKLAB_BOTH void round_to(float x, Fp16& to) {
  const auto bits = same_bits<uint32_t>(x);
  const uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  uint32_t rounded = 0x7fff;
  if (magnitude <= 0x7f800000) {
    if (magnitude >= 0x47800000) {  // 2^16
      rounded = 0x7c00;
    } else if (magnitude < 0x38800000) {  // 2^-14: steps of 2^-24
      rounded = static_cast<uint32_t>(nearbyintf(ldexpf(same_bits<float>(magnitude), 24)));
    } else {
      rounded = (magnitude - (112U << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
    }
  }
  to.bits = static_cast<uint16_t>(sign | rounded);
}
#endif

// a / b and a % b of non-negative numbers: on a GPU a 64-bit division is four times as slow as a 32-bit one.
RANKLAB_BOTH int64_t quotient(int64_t a, int64_t b) {
  return (a | b) >> 32 == 0 ? static_cast<uint32_t>(a) / static_cast<uint32_t>(b) : a / b;
}
RANKLAB_BOTH int64_t remainder_of(int64_t a, int64_t b) { return a - quotient(a, b) * b; }
// The row of the i-th element of a block, counted row by row. A block of one row or one column needs no division.
RANKLAB_BOTH int64_t row_in_block(int64_t i, int64_t height, int64_t width) {
  return height == 1 ? 0 : (width == 1 ? i : quotient(i, width));
}

// These compute in the type of their argument on every target.
RANKLAB_BOTH float power_of_e(float x) { return expf(x); }
RANKLAB_BOTH double power_of_e(double x) { return exp(x); }
RANKLAB_BOTH float log_of_one_plus(float x) { return log1pf(x); }
RANKLAB_BOTH double log_of_one_plus(double x) { return log1p(x); }
RANKLAB_BOTH float root(float x) { return sqrtf(x); }
RANKLAB_BOTH double root(double x) { return sqrt(x); }

template <typename T>
RANKLAB_BOTH Wide<T> rounded(Wide<T> x) {
  T narrow;
  round_to(x, narrow);
  return widened(narrow);
}

// As many elements as fit in 16 bytes.
template <typename T>
constexpr int kPack = 16 / static_cast<int>(sizeof(T));

template <typename T, int kItems>
struct alignas(sizeof(T) * kItems) Pack {
  T item[kItems];
};

// REQUIRES: `from` is aligned to kItems elements.
template <int kItems, typename T>
RANKLAB_BOTH void load(const T* from, Wide<T>* to) {
  const auto pack = *reinterpret_cast<const Pack<T, kItems>*>(from);
  RANKLAB_UNROLL
  for (int i = 0; i < kItems; ++i) to[i] = widened(pack.item[i]);
}
template <int kItems, typename T>
RANKLAB_BOTH void store(const Wide<T>* from, T* to) {
  Pack<T, kItems> pack;
  RANKLAB_UNROLL
  for (int i = 0; i < kItems; ++i) round_to(from[i], pack.item[i]);
  *reinterpret_cast<Pack<T, kItems>*>(to) = pack;
}

}  // namespace ranklab::rows
