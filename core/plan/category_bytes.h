// Bytes of a rank by category. Thread rule: plain data.
#pragma once
#include <array>
#include <cstdint>

#include "core/base/vocabulary.h"

namespace ranklab {

using CategoryBytes = std::array<int64_t, static_cast<size_t>(MemoryCategory::kCount)>;
int64_t together(const CategoryBytes& bytes);

}  // namespace ranklab
