// The cost of a split of the sequence: the forward of causal attention of core/parallel/context in its ring, on 8 ranks
// and a laptop's virtual clock, fp32. Thread rule: one run at a time.
#pragma once
#include <cstdint>
#include <vector>

#include "core/spec/sequence_part.h"
#include "lessons/lanes_picture.h"

namespace ranklab::lesson {

constexpr int kContextRanks = 8;
constexpr int64_t kLongSequence = 4096;

struct SplitCost {
  // When each rank attends; a span is named after the rank whose keys it attends to.
  std::vector<std::vector<GlyphSpan>> blocks;
  int64_t time_ns = 0;  // until the last rank is done
  int64_t hops = 0;     // messages that a rank sends
  double sent_kbs = 0;  // numbers that a rank sends / (K b s): width of the keys, sequences, positions

  double max_over_mean() const;  // of the time that each rank spends on attention
  double useful() const;         // share of all ranks' time that is spent on attention
};

SplitCost measure_split(SequenceBalance balance);

}  // namespace ranklab::lesson
