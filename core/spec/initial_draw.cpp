#include "core/spec/initial_draw.h"

#include <cmath>

namespace ranklab {

void draw_initial(const Init& init, const RandomStream& stream, uint64_t first, std::span<float> out) {
  if (init.kind == InitKind::kNormal) {
    stream.fill_normal(first, out);
    for (float& value : out) value *= static_cast<float>(init.std);
    return;
  }
  stream.fill_uniform(first, out);
  if (init.kind == InitKind::kStepBias) {
    constexpr float kShortest = 1e-3F, kLongest = 0.1F;
    for (float& value : out) {
      const float step = kShortest * std::pow(kLongest / kShortest, value);
      value = step + std::log(-std::expm1(-step));
    }
    return;
  }
  const auto low = static_cast<float>(init.low);
  constexpr float kHigh = 16.0F;
  for (float& value : out) value = std::log(low + (kHigh - low) * value);
}

}  // namespace ranklab
