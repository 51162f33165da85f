// The learning rate as a pure function of the number of completed steps, as in Megatron-LM's OptimizerParamScheduler:
// linear from warmup_init to max_lr over warmup_steps, then a shape of lr_decay.h down to min_lr at decay_steps, min_lr
// after. With a warm-up from 0 the very first step therefore has rate 0. A run that resumes needs nothing but its step.
// Megatron-LM counts sequences; that is the same curve, but where batches grow: there a small batch moves it by less.
// What is given in sequences need not be whole batches.
// Torch-free. Thread rule: immutable.
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
  double warmup_init = 0.0;     // the rate of step 0 if there is a warm-up
  double warmup_steps = 0;      // a fraction of the decay need not be a whole number of steps
  int64_t decay_steps = 0;      // not kConstant: the step at which min_lr is reached; includes the warm-up
  int64_t wsd_decay_steps = 0;  // kWsd: the last steps of decay_steps, in which the rate comes down
  WsdDecay wsd_decay = WsdDecay::kExponential;
  bool in_samples = false;  // the counts above are of sequences, as Megatron-LM's, of which `ramp` says those of a step
  BatchRamp ramp = {};

  // Throws kInvalidArgument naming both numbers, by their flags.
  void validate() const;
  // Skipped steps do not advance it (Megatron-LM's rule).
  double at(int64_t completed_steps, const SkippedSteps& skipped = {}) const;

 private:
  const char* unit() const;
  void validate_decay() const;
};

}  // namespace ranklab
