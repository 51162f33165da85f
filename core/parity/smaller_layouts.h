// Layouts that differ from a run's layout in one part, with the same global batches in the same microbatches. Whether a
// difference is still there tells which parts of the layout it needs. Torch-free. Thread rule: pure.
#pragma once
#include <string>
#include <vector>

#include "core/config/train_config.h"

namespace ranklab {

struct SmallerLayout {
  std::string axis;   // "tp"; for a feature its name: "ZeRO"
  std::string flags;  // what changes: "--tp 1"
  TrainConfig config;
};

// The layout with each axis of the mesh reduced to one rank, and with each feature that only a parallel run has
// switched off, as far as the run is then valid. If the number of experts is no longer divisible, experts are spread
// over fewer ranks.
std::vector<SmallerLayout> smaller_layouts(const TrainConfig& config);
// The layout as flags: "--tp 2 --sequence-parallel --zero-stage 1"; "one rank" for one rank.
std::string layout_flags(const TrainConfig& config);

}  // namespace ranklab
