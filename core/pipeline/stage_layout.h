// --pipeline-layout as text: what each stage of a pipeline has. Either the layers of each, as in 2,2,3,1, or
// Megatron-Core's pattern (pipeline_parallel_layer_layout.py), in which "|" parts stages and a letter stands for a part
// of the model: E the embedding, t a layer, m a module that predicts one token further, L head and loss.
// "Et*3|(tt|)*29m|L" are 32 stages: x*n repeats a character, (...)*n a group, and commas mean nothing. Torch-free.
// Thread rule: pure functions.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ranklab {

struct StageLayout {
  std::vector<int64_t> layers;  // of each stage
  // Of a pattern: the modules of multi-token prediction in it, and the stage that they are in.
  std::optional<int64_t> mtp_layers = {};
  int mtp_stage = -1;  // -1: they are in the last one, with the head
};

// Whether it is a pattern of Megatron-Core's, and no list of numbers.
bool is_stage_pattern(const std::string& text);

// Throws kInvalidArgument naming what it cannot read.
StageLayout parse_stage_layout(const std::string& text);

}  // namespace ranklab
