// The learning rate as a pure function of the number of completed steps, as in Megatron-LM's OptimizerParamScheduler:
// linear from warmup_init to max_lr over warmup_steps, then one of the shapes of lr_decay.h down to min_lr at
// decay_steps, and min_lr after that. With a warm-up from 0 the very first step therefore has rate 0. A resumed run
// needs nothing but its step. Megatron-LM counts sequences instead of steps. The curve is the same, unless the batch
// size ramps up: then a small early batch advances the schedule by less than a full one. Counts given in sequences need
// not be multiples of the batch size. Torch-free. Thread rule: immutable.
#pragma once
#include <cstdint>

#include "core/base/batch_ramp.h"
#include "core/optim/loss_scaler.h"
#include "core/optim/lr_decay.h"

namespace ranklab {

struct LrSchedule {
  LrDecay kind = LrDecay::kConstant;
  double max_lr = 1e-3;
  double min_lr = 0.0;
  double warmup_init = 0.0;     // the rate at step 0 if there is a warm-up
  double warmup_steps = 0;      // need not be a whole number: it may be given as a fraction of the decay
  int64_t decay_steps = 0;      // not kConstant: the step at which min_lr is reached; includes the warm-up
  int64_t wsd_decay_steps = 0;  // kWsd: the last steps of decay_steps, in which the rate falls
  WsdDecay wsd_decay = WsdDecay::kExponential;
  bool in_samples = false;  // the counts above are in sequences, as in Megatron-LM; `ramp` gives the sequences per step
  BatchRamp ramp = {};

  // Throws kInvalidArgument naming both conflicting numbers by their flags.
  void validate() const;
  // Skipped steps do not advance the schedule (Megatron-LM's rule).
  double at(int64_t completed_steps, const SkippedSteps& skipped = {}) const;

 private:
  const char* unit() const;
  void validate_decay() const;
};

}  // namespace ranklab
