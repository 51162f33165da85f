// The inputs of a forward besides its tensors, passed from the model to its layers; recomputation saves it for the
// second forward. Thread rule: plain data.
#pragma once
#include "core/model/batch.h"
#include "core/nn/dropout.h"
#include "core/parallel/token_context.h"

namespace ranklab {

struct DecodeCache;  // decode_cache.h

// Which of the two forwards this is under recomputation (recompute.h).
enum class RecomputePass { kNone, kFirst, kRecompute };

struct ForwardContext {
  Batch batch;
  StageResult result = StageResult::kLoss;
  double dropout = 0;  // probability; 0: off
  TokenContext tokens = {};
  int64_t first_position = 0;  // first position of this rank, with sequence parallelism
  uint64_t seed = 0;
  RecomputePass pass = RecomputePass::kNone;
  DecodeCache* cache = nullptr;  // decoding: the tokens follow those in the cache

  // Identifies the elements for which dropout draws random numbers.
  DropoutContext dropout_context() const {
    return {seed, static_cast<uint64_t>(tokens.step), tokens.first_sample, first_position, tokens.seq_length};
  }
};

}  // namespace ranklab
