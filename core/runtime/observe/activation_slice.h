// The positions and sequences of the step's global batch that an activation of one rank holds. Thread rule: pure.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "core/comm/rank_context.h"
#include "core/config/train_config.h"

namespace ranklab {

struct ActivationSlice {
  std::vector<int64_t> positions;                // positions in a sequence, in the order of the tensor's first dim
  int64_t first_sequence = 0, end_sequence = 0;  // indices in the global batch
};

// The slice held by an activation whose first two dims have these sizes (positions and sequences), in a microbatch of
// this rank; nothing if the sizes do not match the tokens of a rank.
std::optional<ActivationSlice> activation_slice(const RunPlan& plan, const RankContext& ctx, int64_t step,
                                                int microbatch, int64_t positions, int64_t sequences);

}  // namespace ranklab
