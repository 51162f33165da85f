// The settings of commands that run a saved model, unless flags say otherwise. Thread rule: pure.
#pragma once
#include "core/config/train_config.h"

namespace ranklab {

// One rank, no training, no trace.
inline TrainConfig saved_run_defaults() {
  TrainConfig c;
  c.parallel = {.world = 1};
  c.train_iters = 0;
  c.eval_interval = 0;
  c.sample_tokens = 0;
  c.trace = false;
  return c;
}

}  // namespace ranklab
