// The random numbers from which a parameter starts. Each is drawn by the index of its element in the global tensor, so
// they are the same in every layout (core/base/numbers/philox.h). Torch-free. Cost: one block of four numbers per four
// elements. Thread rule: pure.
#pragma once
#include <cstdint>
#include <span>

#include "core/base/numbers/philox.h"
#include "core/spec/module_spec.h"

namespace ranklab {

// False for kinds of initialization that give every element the same value.
constexpr bool is_drawn(InitKind kind) { return kind != InitKind::kZeros && kind != InitKind::kOnes; }

// Fills out[i] with the initial value of element first + i. REQUIRES: is_drawn(init.kind).
void draw_initial(const Init& init, const RandomStream& stream, uint64_t first, std::span<float> out);

}  // namespace ranklab
