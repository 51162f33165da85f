#include "core/spec/megatron_sizes.h"

#include <cmath>

namespace ranklab {

double megatron_ffn(double hidden, bool gated) {
  constexpr double kStep = 64;
  return gated ? std::floor(4 * hidden * 2 / 3 / kStep) * kStep : 4 * hidden;
}

int64_t megatron_vocabulary(int64_t tokens, int64_t tp, int64_t divisor) {
  const int64_t step = divisor * tp;
  return (tokens + step - 1) / step * step;
}

std::optional<std::vector<int64_t>> megatron_stage_layers(int64_t layers, int64_t pp, std::optional<int64_t> first,
                                                          std::optional<int64_t> last) {
  const int64_t others = pp - (first ? 1 : 0) - (last ? 1 : 0), rest = layers - first.value_or(0) - last.value_or(0);
  if (others < 0 || rest < others || (others == 0 ? rest != 0 : rest % others != 0)) return std::nullopt;
  std::vector<int64_t> stages(static_cast<size_t>(pp), others > 0 ? rest / others : 0);
  if (first) stages.front() = *first;
  if (last) stages.back() = *last;
  return stages;
}

}  // namespace ranklab
