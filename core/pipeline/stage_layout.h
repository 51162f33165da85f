// Parses --pipeline-layout, which says what each stage of a pipeline contains. It is either the number of layers of
// each stage, as in 2,2,3,1, or Megatron-Core's pattern (pipeline_parallel_layer_layout.py), in which "|" separates
// stages and a letter stands for a part of the model: E the embedding, t a layer, m a module of multi-token prediction,
// L head and loss. "Et*3|(tt|)*29m|L" describes 32 stages: x*n repeats a character, (...)*n a group, and commas are
// ignored. Torch-free. Thread rule: pure functions.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ranklab {

struct StageLayout {
  std::vector<int64_t> layers;  // of each stage
  // For a pattern: the number of multi-token-prediction modules in it, and the stage that contains them.
  std::optional<int64_t> mtp_layers = {};
  int mtp_stage = -1;  // -1: they are in the last stage, with the head
};

// Whether the text is a pattern like Megatron-Core's rather than a list of numbers.
bool is_stage_pattern(const std::string& text);

// Throws kInvalidArgument naming the part that it cannot parse.
StageLayout parse_stage_layout(const std::string& text);

}  // namespace ranklab
