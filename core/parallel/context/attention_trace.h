// Records attention's work on each part of the keys as a span in the rank's trace (core/trace/attention_event.h).
// Records nothing if the trace level is coarser than modules. Cost: one event per hop, some microseconds. Thread rule:
// the thread that computes the attention.
#pragma once
#include <optional>
#include <vector>

#include "core/parallel/context/context_parallel.h"
#include "core/spec/attention_cells.h"
#include "core/trace/attention_event.h"
#include "core/trace/event.h"

namespace ranklab {

// The attention of queries to keys at these positions, from construction to end(). A forward inside a RecomputeScope is
// recorded as recomputation. `sequences`: the number of sequences that have blocks of their own; their mean is
// recorded.
class AttentionSpan {
 public:
  AttentionSpan(const ContextParallel& cp, const std::vector<PositionRun>& queries,
                const std::vector<PositionRun>& keys, AttentionPass pass, int64_t sequences = 1);
  void add(const AttentionBlock& block);
  void end();  // records the span, if there was a block

 private:
  const ContextParallel& cp_;
  const std::vector<PositionRun>&queries_, &keys_;
  AttentionPass pass_;
  int64_t sequences_;
  std::optional<AttentionCells> cells_;  // only if the span is recorded
  Event event_;
};

// Attention of this rank's heads to whole sequences, between the two exchanges of heads. A second begin replaces the
// first.
void begin_own_heads(const ContextParallel& cp, int64_t positions, AttentionPass pass);
void end_own_heads(const ContextParallel& cp);

}  // namespace ranklab
