// The input of a model's forward and the wanted result. Legend: B sequences, S tokens each. Thread rule: plain data.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace ranklab {

struct Batch {
  at::Tensor tokens_BS;      // int64, the same on every rank of a model-parallel group
  at::Tensor targets_BS;     // int64, next tokens; -100 is ignored
  int64_t first_sample = 0;  // index of the first sequence in this step's global batch: selects the dropout mask
  int64_t step = 0;
  // The factor on the sum of the token losses before backward, for losses that are added in stages other than the last
  // (the load balancing loss of experts).
  double loss_scale = 1.0;
};

// What the last stage returns for a microbatch.
enum class StageResult { kLoss, kLogits };

}  // namespace ranklab
