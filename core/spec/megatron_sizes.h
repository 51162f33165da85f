// Sizes that Megatron-LM derives from others (megatron/training/arguments.py, megatron/training/tokenizer), for what
// reads its command lines and its published runs. Torch-free. Thread rule: pure functions.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace ranklab {

inline constexpr int64_t kGpt2Tokens = 50257;

// The MLP's width where none is given: 4 times the hidden size; gated two thirds of that, in whole 64s.
double megatron_ffn(double hidden, bool gated);

// A vocabulary with rows added up to a multiple of `divisor` for each tp rank. REQUIRES: divisor, tp above 0.
int64_t megatron_vocabulary(int64_t tokens, int64_t tp, int64_t divisor = 128);

// What makes the first and the last pipeline stage unlike the others: a number of layers of the rank's own
// (--decoder-first-pipeline-num-layers), or the embedding, and head and loss, counted as a layer
// (--account-for-embedding-in-pipeline-split).
struct StageEnds {
  std::optional<int64_t> first = {}, last = {};
  bool embedding = false, loss = false;
  bool alike() const { return !first && !last && !embedding && !loss; }
};

// Layers of each of pp x vpp stages, in the order of the layers; nothing where they do not divide.
std::optional<std::vector<int64_t>> megatron_stage_layers(int64_t layers, int64_t pp, int64_t vpp,
                                                          const StageEnds& ends);

}  // namespace ranklab
