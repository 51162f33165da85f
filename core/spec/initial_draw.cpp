#include "core/spec/initial_draw.h"

#include <cmath>

namespace ranklab {

void draw_initial(const Init& init, const RandomStream& stream, uint64_t first, std::span<float> out) {
  if (init.kind == InitKind::kNormal) {
    stream.fill_normal(first, out);
    for (float& value : out) value *= static_cast<float>(init.std);
    return;
  }
  constexpr float kLow = 0.01F, kHigh = 16.0F;  // InitKind::kLogUniform
  stream.fill_uniform(first, out);
  for (float& value : out) value = std::log(kLow + (kHigh - kLow) * value);
}

}  // namespace ranklab
