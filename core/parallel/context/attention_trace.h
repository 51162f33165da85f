// Records what attention computes, for each part of the keys, as a span of the rank's trace
// (core/trace/attention_event.h). Nothing where the trace is less detailed than modules. Cost: an event per hop, some
// microseconds. Thread rule: the thread that computes the attention.
#pragma once
#include <optional>
#include <vector>

#include "core/parallel/context/context_parallel.h"
#include "core/spec/attention_cells.h"
#include "core/trace/attention_event.h"
#include "core/trace/event.h"

namespace ranklab {

// From its beginning to end(), attention of queries to keys at these positions. A forward inside a RecomputeScope is
// recorded as recomputation. `sequences`: so many have blocks of their own, of which the mean is recorded.
class AttentionSpan {
 public:
  AttentionSpan(const ContextParallel& cp, const std::vector<PositionRun>& queries,
                const std::vector<PositionRun>& keys, AttentionPass pass, int64_t sequences = 1);
  void add(const AttentionBlock& block);
  void end();  // records it, if there was a block

 private:
  const ContextParallel& cp_;
  const std::vector<PositionRun>&queries_, &keys_;
  AttentionPass pass_;
  int64_t sequences_;
  std::optional<AttentionCells> cells_;  // only where it is recorded
  Event event_;
};

// Attention of this rank's heads to whole sequences, between the exchanges. A second begin replaces the first.
void begin_own_heads(const ContextParallel& cp, int64_t positions, AttentionPass pass);
void end_own_heads(const ContextParallel& cp);

}  // namespace ranklab
