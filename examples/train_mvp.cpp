// The smallest training program: one rank, a tiny GPT, real text.
//   train_mvp [steps]
#include <cstdlib>

#include "backends/cpu_sim/thread_world.h"
#include "examples/example_hooks.h"

int main(int argc, char** argv) {
  ranklab::TrainConfig config;
  config.parallel = {.world = 1};
  config.global_batch_size = 8;
  config.train_iters = argc > 1 ? std::atoi(argv[1]) : 50;
  config.eval_interval = 0;
  config.sample_tokens = 0;
  const ranklab::RunPlan plan = ranklab::resolve(config);
  return ranklab::examples::train(ranklab::make_thread_world({.size = 1}), plan);
}
