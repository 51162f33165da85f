// The element types of a safetensors file by name and size, and conversion of one element to a number. In the order
// used by the format's own library, which sorts data by type. Thread rule: pure.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ranklab {

enum class TensorType : uint8_t {
  kBool,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kF64,
  kI64,
  kU64
};
inline constexpr int kTensorTypes = 15;

uint64_t size_bytes(TensorType type);
std::string_view name(TensorType type);  // "F32", "F8_E4M3", ...
bool is_float(TensorType type);
// False when no type has that name.
bool find_tensor_type(std::string_view text, TensorType& type);
std::string tensor_type_names();  // for messages
// The element whose bytes begin at `at`. 64-bit integers lose precision beyond a double's. F8_E4M3 is the variant
// without infinities (Micikevicius et al., arXiv 2209.05433).
double element_value(TensorType type, const std::byte* at);

}  // namespace ranklab
