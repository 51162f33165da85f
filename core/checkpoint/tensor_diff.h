// Two safetensors files side by side: tensors that one of them lacks, types and shapes that differ, and for equal ones
// which elements differ in their bits. Whether metadata differs is told, but is no difference of the tensors.
// Cost: every byte of both is read once (and its checksum held), two buffers of a chunk. Thread rule: pure.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/checkpoint/safetensors.h"

namespace ranklab {

struct TensorDifference {
  enum class Kind { kOnlyInA, kOnlyInB, kType, kShape, kValues };
  std::string name = {};
  Kind kind = Kind::kValues;
  std::string a = {}, b = {};  // type and shape, "" where there is no tensor
  // kValues:
  uint64_t elements = 0;
  uint64_t differing = 0;           // in any bit
  std::vector<int64_t> first = {};  // index of the first of them
  bool has_values = false;          // the numbers below: float types only
  // Largest of |a - b| and of |a - b| / max(|a|, |b|). Two NaNs, or 0 and -0, are 0 apart; NaN or infinity and
  // anything else infinitely.
  double max_absolute = 0, max_relative = 0;
};

struct SafetensorsDifference {
  std::vector<TensorDifference> tensors = {};  // by name
  uint64_t same_tensors = 0;
  std::vector<std::string> metadata = {};  // keys that differ
};

// Adds to `difference` what elements of one type and shape, `first` and following, differ in. As many bytes of both.
void compare_elements(TensorType type, const std::vector<int64_t>& shape, uint64_t first, std::span<const std::byte> a,
                      std::span<const std::byte> b, TensorDifference& difference);

SafetensorsDifference diff_safetensors(const SafetensorsFile& a, const SafetensorsFile& b);

}  // namespace ranklab
