// Consecutive layers for pipeline stages, so that the stage with the most work has as little as possible: the head is
// work of the last stage, which therefore gets fewer layers. torchtitan counts embedding and head as a layer each,
// Megatron-LM has --account-for-loss-in-pipeline-split; here they count as many layers as they have FLOPs. Cost:
// O(layers + stages x log layers). Thread rule: pure.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace ranklab {

// As many layers each, the first stages one more.
std::vector<int64_t> even_split(int64_t layers, int64_t stages);

// Work of the first and of the last stage besides their layers: the embedding, and the head with the loss.
struct EndWork {
  double ahead = 0, behind = 0;
};

// Layers of each stage, at least one each. `layers`: the work of each layer. No other split has a smaller fullest
// stage; within that, stages begin where an even share of the work does or just before, so that the first stages, which
// hold more microbatches' activations, rather have fewer layers.
std::vector<int64_t> balanced_split(std::span<const double> layers, const EndWork& ends, int64_t stages);

// The work of the fullest stage; stages of `split` may have no layer.
double fullest_stage(std::span<const double> layers, const EndWork& ends, std::span<const int64_t> split);

}  // namespace ranklab
