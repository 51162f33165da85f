// Layouts that differ from a run's in one thing, of the same global batches in the same microbatches: whether a
// difference stays there tells what it needs. Torch-free. Thread rule: pure.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/config/train_config.h"

namespace ranklab {

struct SmallerLayout {
  std::string axis;   // "tp"; of a feature its name: "ZeRO"
  std::string flags;  // what it is with: "--tp 1"
  TrainConfig config;
};

// Each axis of the mesh with one rank, and each feature that a parallel run alone has switched off: those that make a
// valid run. Experts that no longer divide are spread over fewer ranks.
std::vector<SmallerLayout> smaller_layouts(const TrainConfig& config);
// The layout as one types it: "--tp 2 --sequence-parallel --zero-stage 1", "one rank".
std::string layout_flags(const TrainConfig& config);

}  // namespace ranklab
