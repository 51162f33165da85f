// The inputs of a forward besides its tensors, passed from the model to its layers. Recomputation saves it for the
// second forward. Thread rule: plain data.
#pragma once
#include <memory>
#include <vector>

#include "core/base/injected_bug.h"
#include "core/model/batch.h"
#include "core/nn/dropout.h"
#include "core/parallel/token_context.h"

namespace ranklab {

struct DecodeCache;  // decode_cache.h

// Which of the two forwards this is under activation recomputation (recompute.h).
enum class RecomputePass { kNone, kFirst, kRecompute };

// This rank's positions of each sequence under context parallelism. Thread rule: immutable.
struct SequencePart {
  int64_t seq_length = 0;                                           // length of the whole sequences
  std::shared_ptr<const std::vector<int64_t>> positions = nullptr;  // also TokenContext::positions
  at::Tensor index = {};                                            // the same on the device, int64
  // the positions that neighbours hold together after exchanging heads (a2a+p2p); else undefined
  at::Tensor exchanged = {};
  std::vector<std::shared_ptr<const std::vector<int64_t>>> of_ranks = {};  // positions of each rank, including this one
};

struct ForwardContext {
  Batch batch;
  StageResult result = StageResult::kLoss;
  double dropout = 0;            // probability; 0: off
  double attention_dropout = 0;  // of attention probabilities
  TokenContext tokens = {};
  // With sequence parallelism, the first of this rank's positions; with a `part`, its index in that part.
  int64_t first_position = 0;
  uint64_t seed = 0;
  RecomputePass pass = RecomputePass::kNone;
  DecodeCache* cache = nullptr;  // decoding: the tokens follow those in the cache

  std::shared_ptr<const SequencePart> part = nullptr;  // null: the rank has whole sequences

  // The columns of x_BS [B, S] at this rank's positions.
  at::Tensor own_positions(const at::Tensor& x_BS) const;

  // Identifies the elements for which dropout draws random numbers.
  DropoutContext dropout_context() const {
    return {seed,
            static_cast<uint64_t>(tokens.step),
            tokens.first_sample,
            injected(InjectedBug::kDropoutMaskRepeated) ? 0 : first_position,
            tokens.positions,
            tokens.seq_length,
            tokens.random_offset};
  }
};

}  // namespace ranklab
