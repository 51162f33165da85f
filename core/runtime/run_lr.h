// The learning-rate schedule of a run. Thread rule: pure.
#pragma once
#include "core/config/train_config.h"
#include "core/optim/lr_schedule.h"

namespace ranklab {

inline LrSchedule lr_schedule_of(const TrainConfig& c) {
  return {.kind = c.lr_decay == LrDecay::kCosine ? LrKind::kCosine : LrKind::kConstant,
          .max_lr = c.lr,
          .min_lr = c.min_lr,
          .warmup_steps = c.lr_warmup_iters,
          .decay_steps = c.lr_decay_iters > 0 ? c.lr_decay_iters : c.train_iters};
}

}  // namespace ranklab
