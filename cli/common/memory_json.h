// Bytes by category, and what a framework itself uses of a GPU's memory, as every command prints them: {"parameters":
// ..., ..., "together": ...}. Thread rule: pure.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/vocabulary.h"
#include "core/plan/measured/framework_memory.h"

namespace ranklab {

template <typename Bytes>  // indexed by MemoryCategory
nlohmann::ordered_json category_bytes_json(const Bytes& bytes) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  int64_t sum = 0;
  for (size_t c = 0; c < static_cast<size_t>(MemoryCategory::kCount); ++c) {
    out[std::string(name(static_cast<MemoryCategory>(c)))] = bytes[c];
    sum += bytes[c];
  }
  out["together"] = sum;
  return out;
}

inline nlohmann::ordered_json framework_memory_json(const FrameworkMemory& memory) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (const auto& [part, bytes] : memory.parts()) out[part] = static_cast<int64_t>(bytes);
  out["together"] = static_cast<int64_t>(memory.on_device());
  return out;
}

}  // namespace ranklab
