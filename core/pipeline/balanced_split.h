// Splits layers into consecutive runs for pipeline stages so that the stage with the most work has as little as
// possible. The head is part of the last stage's work, so that stage gets fewer layers, or none. torchtitan counts
// embedding and head as one layer each, Megatron-LM has --account-for-loss-in-pipeline-split; here they count as many
// layers as they have FLOPs. Cost: O(layers + stages x log layers). Thread rule: pure.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace ranklab {

// The work of the first and of the last stage besides their layers: the embedding, and the head with the loss.
struct EndWork {
  double ahead = 0, behind = 0;
};

// The number of layers of each stage, at least one, but for the last stage if there is work behind the layers.
// `layers`: the work of each layer. No other split has a smaller fullest stage. Among the splits for which this holds,
// each stage begins where an even share of the work would begin, or just before it, so that the first stages, which
// hold more microbatches' activations, tend to have fewer layers.
std::vector<int64_t> balanced_split(std::span<const double> layers, const EndWork& ends, int64_t stages);

// The work of the fullest stage. Stages of `split` may have no layers.
double fullest_stage(std::span<const double> layers, const EndWork& ends, std::span<const int64_t> split);

}  // namespace ranklab
