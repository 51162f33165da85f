// The learning rate as a pure function of the number of completed steps, as in Megatron-LM's OptimizerParamScheduler:
// linear from 0 to max_lr over warmup_steps, then constant or a half cosine down to min_lr at decay_steps, min_lr
// after. With a warm-up the very first step therefore has rate 0. Torch-free. Thread rule: immutable.
#pragma once
#include <cstdint>

namespace ranklab {

enum class LrKind { kConstant, kCosine };

struct LrSchedule {
  LrKind kind = LrKind::kConstant;
  double max_lr = 1e-3;
  double min_lr = 0.0;
  int64_t warmup_steps = 0;
  int64_t decay_steps = 0;  // kCosine: step at which min_lr is reached; includes the warm-up

  // Throws kInvalidArgument naming both numbers.
  void validate() const;
  double at(int64_t completed_steps) const;
};

}  // namespace ranklab
