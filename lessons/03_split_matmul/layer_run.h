// One transformer layer of core/model on 8 tensor-parallel ranks, forward and backward, on a laptop's virtual clock.
// Thread rule: one run at a time.
#pragma once
#include <vector>

#include "lessons/rank_run.h"

namespace ranklab::lesson {

constexpr int64_t kLayerSequence = 128, kLayerBatch = 4, kLayerHidden = 128;
constexpr int64_t kLayerNumbers = kLayerSequence * kLayerBatch * kLayerHidden;  // b x s x h

struct LayerRun {
  std::vector<RankRecord> records;

  int64_t calls(Verb verb) const;          // with b x s x h elements; rank 0
  int64_t forward_calls(Verb verb) const;  // those before backward began
  double numbers_sent() const;             // by rank 0 in these calls, in units of b x s x h
  int64_t time_ns() const;
};

LayerRun run_layer(bool sequence_parallel);

}  // namespace ranklab::lesson
