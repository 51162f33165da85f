// Number formats of 4 and 8 bits, bit-exact on any machine: OCP FP8 E4M3 and E5M2 (Micikevicius et al. 2022, arXiv
// 2209.05433), E2M1 and the power-of-two scale E8M0 of OCP MX (Rouhani et al. 2023, arXiv 2310.10537). Converts codes
// to values and values to codes, to nearest with ties to even. This is the reference that fast kernels are tested
// against. Torch-free. Cost: a few floating-point operations per number. Thread rule: pure.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ranklab {

struct NumberFormat {
  // Which codes are not finite numbers.
  enum class Special {
    kNone,        // all are numbers (E2M1)
    kNan,         // all ones after the sign is NaN; there is no infinity (E4M3)
    kIeee,        // the top exponent: infinity, and NaN with a mantissa (E5M2)
    kUnsignedNan  // no sign, no zero; all ones is NaN (E8M0)
  };
  std::string_view name;  // "e4m3"
  int exponent_bits = 0, mantissa_bits = 0, bias = 0;
  Special special = Special::kNone;

  int bits() const { return (special == Special::kUnsignedNan ? 0 : 1) + exponent_bits + mantissa_bits; }
  int codes() const { return 1 << bits(); }
  double largest() const;  // finite
  double smallest_normal() const;
  double smallest() const;  // above zero
};

std::span<const NumberFormat> number_formats();
// Throws kInvalidArgument, with the nearest name, if there is no such format.
const NumberFormat& find_number_format(const std::string& name);

// How numbers beyond the largest are encoded.
enum class Overflow {
  kSaturate,   // as the largest, also infinity (NVIDIA's satfinite)
  kPropagate,  // as infinity, or NaN in formats without one
};

// REQUIRES: code < format.codes().
double decode(const NumberFormat& format, uint8_t code);
// NaN has a code in every format except E2M1, where it becomes the largest. In E8M0 negative numbers become NaN.
uint8_t encode(const NumberFormat& format, float x, Overflow overflow = Overflow::kSaturate);

}  // namespace ranklab
