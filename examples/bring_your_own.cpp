// Trains the model, data and optimizer of bring_your_own.h on ranks that share the batch; with --dry-run tells what a
// step of that would take, hold and move, for as many ranks as you like, and trains nothing.
//   bring_your_own [--dry-run] [steps] [ranks]
#include "examples/bring_your_own.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "backends/cpu_sim/thread_world.h"
#include "examples/example_hooks.h"
#include "examples/example_plan.h"

int main(int argc, char** argv) {
  using namespace ranklab;
  const bool plans = argc > 1 && std::strcmp(argv[1], "--dry-run") == 0;
  if (plans) --argc, ++argv;
  const int ranks = argc > 2 ? std::atoi(argv[2]) : 4;
  TrainConfig config;
  config.parallel = {.world = ranks};
  config.model.seq_length = 64;
  config.global_batch_size = std::max(16, ranks);
  config.train_iters = argc > 1 ? std::atoi(argv[1]) : 50;
  config.lr = 0.04;
  config.eval_interval = 0;
  config.sample_tokens = 0;
  const RunPlan plan = resolve(config);
  if (plans) return examples::dry_run(examples::own_components(default_parts()), plan);
  return examples::train(examples::own_components(default_components(make_thread_world({.size = ranks}), plan)), plan);
}
