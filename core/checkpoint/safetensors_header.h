// The header of a safetensors file (github.com/huggingface/safetensors, "Format"): 8 bytes with the header's length,
// little-endian, then JSON: {"__metadata__": {text: text}, NAME: {"dtype", "shape", "data_offsets"}}. The reader trusts
// nothing: it refuses malformed headers, duplicate keys, unknown fields, nesting, names with control characters, shapes
// whose size overflows or does not match the offsets, and offsets that leave gaps or overlap. Cost: memory of a small
// multiple of the header. Thread rule: pure; plain data.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/checkpoint/tensor_type.h"

namespace ranklab {

inline constexpr uint64_t kMostHeaderBytes = 100'000'000;  // the limit of the format's own library

struct TensorEntry {
  std::string name = {};
  TensorType type = TensorType::kF32;
  std::vector<int64_t> shape = {};
  uint64_t begin = 0;  // bytes, counted from the header's end
  uint64_t end = 0;
  uint64_t size_bytes() const { return end - begin; }
  uint64_t elements() const { return size_bytes() / ranklab::size_bytes(type); }
};

struct SafetensorsHeader {
  std::vector<TensorEntry> tensors = {};  // sorted by name
  std::map<std::string, std::string> metadata = {};
};

// `data_bytes` follow the header in the file. Throws kBadFile naming path, tensor, what it got and what it wants.
SafetensorsHeader parse_safetensors_header(std::string_view json, uint64_t data_bytes, const std::string& path);

// The header's JSON, padded with spaces so that the data begins at a multiple of 8. `tensors` must be in the order of
// their data. Throws kInvalidArgument when a name or metadata is not UTF-8.
std::string safetensors_header_json(std::span<const TensorEntry> tensors,
                                    const std::map<std::string, std::string>& metadata);

// "" when `name` is a valid tensor name, otherwise what is wrong with it.
std::string fault_of_tensor_name(std::string_view name);
// False if the result or an intermediate product overflows 64 bits.
bool tensor_bytes(std::span<const int64_t> shape, TensorType type, uint64_t& bytes);

}  // namespace ranklab
