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

std::optional<std::vector<int64_t>> megatron_stage_layers(int64_t layers, int64_t pp, int64_t vpp,
                                                          const StageEnds& ends) {
  const int64_t counted = layers + (ends.embedding ? 1 : 0) + (ends.loss ? 1 : 0);
  const int64_t others = pp - (ends.first ? 1 : 0) - (ends.last ? 1 : 0);
  const int64_t rest = counted - ends.first.value_or(0) - ends.last.value_or(0);
  if (pp < 1 || vpp < 1 || others < 0 || rest < others || (others == 0 ? rest != 0 : rest % others != 0))
    return std::nullopt;
  std::vector<int64_t> ranks(static_cast<size_t>(pp), others > 0 ? rest / others : 0);
  if (ends.first) ranks.front() = *ends.first;
  if (ends.last) ranks.back() = *ends.last;
  std::vector<int64_t> stages;
  for (int64_t chunk = 0; chunk < vpp; ++chunk) {
    for (const int64_t of_rank : ranks) {
      if (of_rank % vpp != 0) return std::nullopt;
      stages.push_back(of_rank / vpp);
    }
  }
  stages.front() -= ends.embedding ? 1 : 0;
  stages.back() -= ends.loss ? 1 : 0;
  if (stages.front() < 0 || stages.back() < 0) return std::nullopt;
  return stages;
}

}  // namespace ranklab
