// Element types by name and size, without torch: what trace, sim and the command line need to know of a tensor.
#pragma once
#include <cstdint>
#include <string_view>

namespace ranklab {

enum class DType : uint8_t { kFloat32, kFloat64, kBFloat16, kFloat16, kFloat8, kInt64, kInt32, kUInt8, kBool, kOther };

int64_t size_bytes(DType dtype);      // bytes per element; kOther counts 1
std::string_view name(DType dtype);   // "fp32", "bf16", ...
DType parse_dtype(std::string_view);  // throws kInvalidArgument, listing the names

}  // namespace ranklab
