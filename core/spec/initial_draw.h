// The random numbers that a parameter starts from, by the index of an element in the global tensor: the same in every
// layout (core/base/numbers/philox.h). Torch-free. Cost: a block of four numbers for four elements. Thread rule: pure.
#pragma once
#include <cstdint>
#include <span>

#include "core/base/numbers/philox.h"
#include "core/spec/module_spec.h"

namespace ranklab {

// Others are one number everywhere.
constexpr bool is_drawn(InitKind kind) { return kind != InitKind::kZeros && kind != InitKind::kOnes; }

// out[i]: of element first + i. REQUIRES: is_drawn(init.kind).
void draw_initial(const Init& init, const RandomStream& stream, uint64_t first, std::span<float> out);

}  // namespace ranklab
