// The settings of commands that run a saved model, unless flags change them, and which model that is. Thread rule: main
// thread.
#pragma once
#include <string>

#include "cli/config/config_options.h"
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

// The path of the model that --load names, whichever source set it; "" for none. As in training, "auto" is the
// checkpoint in the folder of --save. Throws kInvalidArgument if there is no --save.
std::string saved_model_of(const ConfigOptions& options);

}  // namespace ranklab
