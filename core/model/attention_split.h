// How one layer's attention is split in one forward: which ranks exchange heads and which exchange keys, which
// documents or chunks restrict the keys of a query, and the rotary table for the rows that take part. Thread rule:
// plain data; the function is pure.
#pragma once
#include <string>

#include "core/model/forward_context.h"
#include "core/nn/rope.h"
#include "core/parallel/context/context_attention.h"
#include "core/parallel/context/context_parallel.h"

namespace ranklab {

struct AttentionSplit {
  // the ranks that exchange heads for positions before attention, and back after it; not active: none
  ContextParallel heads;
  ContextParallel keys;  // the ranks that exchange keys and values; not active: this rank has all of them
  ContextRule rule;      // its sinks and largest logits are those of the heads after the exchange
  RopeTable rope;        // for the rows after the exchange of heads
  int64_t chunk = 0;     // set only where this rank has whole sequences that nothing but chunks divides; else 0

  // If false, one fused kernel attends to whole sequences.
  bool in_blocks() const {
    return keys.active() || rule.documents != nullptr || rule.dropout != nullptr || rope.cos_SD.dim() > 2;
  }
  bool can_be_watched() const { return !heads.active() && (!in_blocks() || chunk > 0); }
};

// The heads of positions that attend only to each other, for hooks that inspect attention: all positions, or the last
// whole chunk.
SoftmaxHeads watched_heads(const SoftmaxHeads& heads, int64_t chunk);

// The heads of a layer: `own` heads of this rank before an exchange, beginning with head `first`, out of `all` heads of
// the model.
struct AttentionHeads {
  std::string layer_name;  // name of the layer's attention module
  int64_t own = 1, first = 0, all = 1;
};

// Documents::position_BS extended to this many rows: sequence parallelism pads sequences at the end.
at::Tensor padded_positions(const at::Tensor& position_BS, int64_t rows);

// `rows`: the positions that this rank has before the exchange. `table`: for the whole sequence. `chunk`:
// ModelConfig::chunk_of_layer(); where documents attend separately, chunks restart at each document.
AttentionSplit attention_split(const ForwardContext& context, const ContextParallel& of_layer, const ScoreRule& scores,
                               const RopeTable& table, int64_t rows, const AttentionHeads& heads, int64_t chunk);

// The positions of the rows that this rank has before an exchange, int64: [S], or [B, S] where positions restart at
// documents.
at::Tensor row_positions(const ForwardContext& context, int64_t rows, c10::Device device);

}  // namespace ranklab
