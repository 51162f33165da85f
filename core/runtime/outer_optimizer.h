// DiLoCo: the optimizer of a replica's rank, followed every few steps by the outer updates of all replicas
// (core/parallel/data/outer_update.h; settings: core/config/diloco/diloco_config.h). The model's fragments are runs of
// layers; the embedding belongs to the first, the head to the last. Thread rule: its rank's thread.
#pragma once
#include <memory>

#include "core/runtime/components.h"

namespace ranklab {

// `optimizer` must reduce gradients within the replica only.
std::unique_ptr<RankOptimizer> with_outer_updates(std::unique_ptr<RankOptimizer> optimizer, RankContext& ctx,
                                                  const RunPlan& plan);

}  // namespace ranklab
