// What a split of the sequence costs: causal attention of core/parallel/context in its ring, forward, on 8 ranks and a
// laptop's virtual clock, fp32. Thread rule: one run at a time.
#pragma once
#include <cstdint>
#include <vector>

#include "core/spec/sequence_part.h"
#include "lessons/lanes_picture.h"

namespace ranklab::lesson {

constexpr int kContextRanks = 8;
constexpr int64_t kLongSequence = 4096;

struct SplitCost {
  // When each rank attends, named by the rank whose keys it attends to.
  std::vector<std::vector<GlyphSpan>> blocks;
  int64_t time_ns = 0;  // until the last rank is done
  int64_t hops = 0;     // messages that a rank sends
  double sent_kbs = 0;  // numbers that a rank sends, over K b s: width of the keys, sequences, positions

  double max_over_mean() const;  // of the time that ranks attend
  double useful() const;         // part of all ranks' time in which they attend
};

SplitCost measure_split(SequenceBalance balance);

}  // namespace ranklab::lesson
