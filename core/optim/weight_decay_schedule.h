// Weight decay that changes over a run, as in Megatron-LM's OptimizerParamScheduler.get_wd() (--start-weight-decay,
// --end-weight-decay, --weight-decay-incr-style): it goes from `start` in the first step, linearly or along half a
// period of a cosine, to `end`, which it would reach after the run's last sequence. It may fall as well as rise. A pure
// function of the number of completed steps, so that a resumed run needs nothing but its step. Torch-free. Thread rule:
// immutable.
#pragma once
#include <cstdint>

#include "core/base/batch_ramp.h"
#include "core/optim/loss_scaler.h"

namespace ranklab {

// In the order of --weight-decay-incr-style in core/config/settings/optim_fields.cpp.
enum class WeightDecayStyle { kConstant, kLinear, kCosine };

struct WeightDecaySchedule {
  WeightDecayStyle style = WeightDecayStyle::kConstant;
  double start = 0.1, end = 0.1;  // kConstant: always `end`
  int64_t samples = 0;            // number of sequences in the whole run
  BatchRamp ramp = {};            // gives the number of sequences in each step

  // Skipped steps do not advance the schedule (Megatron-LM's rule).
  double at(int64_t completed_steps, const SkippedSteps& skipped = {}) const;
};

}  // namespace ranklab
