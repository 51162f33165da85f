#include "core/optim/weight_decay_schedule.h"

#include "core/optim/lr_decay.h"

namespace ranklab {

double WeightDecaySchedule::at(int64_t completed_steps, const SkippedSteps& skipped) const {
  const int64_t done = ramp.samples_before(completed_steps) - skipped.samples;
  if (style == WeightDecayStyle::kConstant || done > samples || samples == 0) return end;
  const double ratio = static_cast<double>(done) / static_cast<double>(samples);
  const double left = style == WeightDecayStyle::kLinear ? linear_left(ratio) : cosine_left(ratio);
  return start + (end - start) * (1 - left);
}

}  // namespace ranklab
