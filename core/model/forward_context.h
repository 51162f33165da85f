// What a forward works with beside its tensors, handed down from the model to its layers; recomputation keeps it for
// the second forward. Thread rule: plain data.
#pragma once
#include "core/model/batch.h"
#include "core/nn/dropout.h"
#include "core/parallel/token_place.h"

namespace ranklab {

struct DecodeCache;  // decode_cache.h

// Which of the two forwards of recomputation (recompute.h).
enum class RecomputePass { kNone, kFirst, kAgain };

struct ForwardContext {
  Batch batch;
  StageResult result = StageResult::kLoss;
  double dropout = 0;       // probability; 0: off
  DropoutPlace place = {};  // this rank's positions: names the elements that draw random numbers
  TokenPlace tokens = {};
  RecomputePass pass = RecomputePass::kNone;
  DecodeCache* cache = nullptr;  // decoding: the tokens stand behind those in it
};

}  // namespace ranklab
