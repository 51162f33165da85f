// What a model computes on, and what of it is wanted. Legend: B sequences, S tokens each. Thread rule: plain data.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace ranklab {

struct Batch {
  at::Tensor tokens_BS;      // int64, the same on every rank of a model-parallel group
  at::Tensor targets_BS;     // int64, next tokens; -100 is ignored
  int64_t first_sample = 0;  // index of the first sequence in the global batch of this step: names the dropout elements
  int64_t step = 0;
  // What the sum of the token losses is multiplied with before backward, for losses that join in other stages than the
  // last (the balancing of experts).
  double loss_scale = 1.0;
};

// What the last stage makes of a microbatch.
enum class StageResult { kLoss, kLogits };

}  // namespace ranklab
