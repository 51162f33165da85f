#include "core/checkpoint/tensor_stats.h"

#include <algorithm>
#include <vector>

namespace ranklab {

void add_elements(ValueSpread& spread, TensorType type, std::span<const std::byte> bytes) {
  constexpr size_t kAtOnce = 1 << 14;
  const size_t width = size_bytes(type), elements = bytes.size() / width;
  std::vector<double> values;
  for (size_t first = 0; first < elements; first += kAtOnce) {
    values.resize(std::min(kAtOnce, elements - first));
    for (size_t i = 0; i < values.size(); ++i) values[i] = element_value(type, bytes.data() + (first + i) * width);
    spread.add(values);
  }
}

ValueSpread tensor_stats(const TensorSource& tensors, const TensorInfo& tensor) {
  ValueSpread spread;
  tensors.read_blocks(tensor.name, [&](std::span<const std::byte> block) { add_elements(spread, tensor.type, block); });
  return spread;
}

}  // namespace ranklab
