// Which positions of which sequences of the step's global batch an activation of one rank holds. Thread rule: pure.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "core/comm/rank_context.h"
#include "core/config/train_config.h"

namespace ranklab {

struct ActivationSlice {
  std::vector<int64_t> positions;                // of a sequence, in the order of the tensor's first dim
  int64_t first_sequence = 0, end_sequence = 0;  // of the global batch
};

// The slice of an activation with these positions and sequences (its first two dims), in a microbatch of this rank;
// none for sizes that are none of a rank's tokens.
std::optional<ActivationSlice> activation_slice(const RunPlan& plan, const RankContext& ctx, int64_t step,
                                                int microbatch, int64_t positions, int64_t sequences);

}  // namespace ranklab
