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

// Layers of each stage, at least one each. `layers`: the work of each layer; `behind`: the last stage's besides. No
// other split has a smaller fullest stage; within that, stages begin where an even share of the work does or just
// before, so that the first stages, which hold more microbatches' activations, rather have fewer layers.
std::vector<int64_t> balanced_split(std::span<const double> layers, double behind, int64_t stages);

// The work of the fullest stage.
double fullest_stage(std::span<const double> layers, double behind, std::span<const int64_t> split);

}  // namespace ranklab
