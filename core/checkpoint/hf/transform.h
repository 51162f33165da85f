// Converts the bytes of one tensor between their order and ours (mapping.h). Only the order of rows and elements
// changes; types do not. Cost: one pass over the bytes. Thread rule: pure functions.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/checkpoint/hf/mapping.h"

namespace ranklab {

// `ours`: all bytes of our tensor. RETURNS: the bytes of theirs.
std::vector<std::byte> to_theirs(const HfPart& part, std::span<const std::byte> ours, const std::vector<int64_t>& shape,
                                 uint64_t element_bytes);
// The inverse: writes into those rows of `ours` that this part holds.
void to_ours(const HfPart& part, std::span<const std::byte> theirs, std::span<std::byte> ours,
             const std::vector<int64_t>& shape, uint64_t element_bytes);

}  // namespace ranklab
