// Sizes that Megatron-LM derives from other settings (megatron/training/arguments.py, megatron/training/tokenizer), for
// code that reads its command lines and its published runs. Torch-free. Thread rule: pure functions.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace ranklab {

inline constexpr int64_t kGpt2Tokens = 50257;

// The MLP's width where none is given: 4 times the hidden size; for a gated MLP two thirds of that, in multiples of 64.
double megatron_ffn(double hidden, bool gated);

// The vocabulary size padded to a multiple of `divisor` for each tp rank. REQUIRES: divisor and tp above 0.
int64_t megatron_vocabulary(int64_t tokens, int64_t tp, int64_t divisor = 128);

// How the first and the last pipeline stage differ from the others: by their own number of layers
// (--decoder-first-pipeline-num-layers), or because the embedding, or head and loss, count as a layer
// (--account-for-embedding-in-pipeline-split).
struct StageEnds {
  std::optional<int64_t> first = {}, last = {};
  bool embedding = false, loss = false;
  bool alike() const { return !first && !last && !embedding && !loss; }
};

// The number of layers in each of pp x vpp stages, in the order of the layers; nothing if the layers cannot be divided
// so.
std::optional<std::vector<int64_t>> megatron_stage_layers(int64_t layers, int64_t pp, int64_t vpp,
                                                          const StageEnds& ends);

}  // namespace ranklab
