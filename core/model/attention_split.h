// How one layer's attention is split in one forward: between whom heads and keys are exchanged, which documents or
// chunks hide keys from queries, and the rotary table of the rows that are attended with. Thread rule: plain data; the
// function is pure.
#pragma once
#include <string>

#include "core/model/forward_context.h"
#include "core/nn/rope.h"
#include "core/parallel/context/context_attention.h"
#include "core/parallel/context/context_parallel.h"

namespace ranklab {

struct AttentionSplit {
  ContextParallel heads;  // they exchange heads for positions before and after; not active: nobody
  ContextParallel keys;   // they exchange keys and values; not active: this rank has all of them
  ContextRule rule;       // its sinks and largest logits are those of the heads after the exchange
  RopeTable rope;         // of the rows after the exchange of heads
  int64_t chunk = 0;      // where nothing but chunks parts sequences that this rank has whole; else 0

  // Otherwise one fused kernel attends to whole sequences.
  bool in_blocks() const {
    return keys.active() || rule.documents != nullptr || rule.dropout != nullptr || rope.cos_SD.dim() > 2;
  }
  bool can_be_watched() const { return !heads.active() && (!in_blocks() || chunk > 0); }
};

// The heads of positions that attend to each other alone, for who watches: all, or the last whole chunk.
SoftmaxHeads watched_heads(const SoftmaxHeads& heads, int64_t chunk);

// Heads of a layer: of the rank, before an exchange, and of the model.
struct AttentionHeads {
  std::string layer_name;  // of its module
  int64_t own = 1, first = 0, all = 1;
};

// Documents::position_BS for so many rows: sequence parallelism pads sequences at the end.
at::Tensor padded_positions(const at::Tensor& position_BS, int64_t rows);

// `rows`: positions that this rank has before the exchange; `table`: of the whole sequence. `chunk`:
// ModelConfig::chunk_of_layer(); chunks begin anew with each document that is attended to by itself.
AttentionSplit attention_split(const ForwardContext& context, const ContextParallel& of_layer, const ScoreRule& scores,
                               const RopeTable& table, int64_t rows, const AttentionHeads& heads, int64_t chunk);

// The positions of the rows that this rank has before an exchange, int64: [S], or [B, S] where documents count anew.
at::Tensor row_positions(const ForwardContext& context, int64_t rows, c10::Device device);

}  // namespace ranklab
