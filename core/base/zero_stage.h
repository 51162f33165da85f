// What data-parallel ranks shard (ZeRO: Rajbhandari et al. 2020, arXiv 1910.02054): one row per stage. Code that
// depends on the stage reads its row, not its number: the configuration, the reducer, checkpoints, the planner, the
// visualizer. Torch-free. Thread rule: constants.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace ranklab {

// How the ranks sum a bucket's gradients (core/parallel/data/reduction.h).
enum class GradReduction { kAll, kShards };

struct ZeroStage {
  std::string_view strategy;  // as --data-parallel-sharding-strategy names it
  std::string_view effect;
  GradReduction reduction = GradReduction::kShards;
  // What a rank stores as a shard only: optimizer states, gradients after their reduction, parameters between uses.
  bool optimizer = true, gradients = false, parameters = false;
};

inline constexpr std::array kZeroStages = {
    ZeroStage{"no_shard", "every rank updates all it holds", GradReduction::kAll, false},
    ZeroStage{"optim", "optimizer states are sharded"},
    ZeroStage{"optim_grads", "optimizer states and gradients are sharded", GradReduction::kShards, true, true},
    ZeroStage{"optim_grads_params", "optimizer states, gradients and parameters are sharded", GradReduction::kShards,
              true, true, true},
};

// REQUIRES: a row has this number.
constexpr const ZeroStage& zero_stage_row(int64_t number) { return kZeroStages[static_cast<size_t>(number)]; }

}  // namespace ranklab
