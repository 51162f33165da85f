// Data parallelism: every rank holds the whole model and sees its own part of the batch; gradients are summed in
// buckets while the backward pass still runs. The losses are those of train_ddp with one rank.
//   train_ddp [steps] [ranks]
#include <cstdlib>

#include "backends/cpu_sim/thread_world.h"
#include "examples/example_hooks.h"

int main(int argc, char** argv) {
  const int ranks = argc > 2 ? std::atoi(argv[2]) : 4;
  ranklab::TrainConfig config;
  config.parallel = {.world = ranks};
  config.global_batch_size = 8;
  config.overlap_grad_reduce = true;
  config.train_iters = argc > 1 ? std::atoi(argv[1]) : 50;
  config.eval_interval = 0;
  config.sample_tokens = 0;
  const ranklab::RunPlan plan = ranklab::resolve(config);
  return ranklab::examples::train(ranklab::make_thread_world({.size = ranks}), plan);
}
