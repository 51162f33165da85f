// Tensor parallelism with sequence parallelism (Megatron-LM): every layer is split over the ranks, and so are the
// tokens between the layers. Every rank sees the same batch.
//   train_tp [steps] [ranks]
#include <cstdlib>

#include "backends/cpu_sim/thread_world.h"
#include "examples/example_hooks.h"

int main(int argc, char** argv) {
  const int ranks = argc > 2 ? std::atoi(argv[2]) : 4;
  ranklab::TrainConfig config;
  config.parallel = {.world = ranks, .tp = ranks};
  config.sequence_parallel = ranks > 1;
  config.global_batch_size = 8;
  config.train_iters = argc > 1 ? std::atoi(argv[1]) : 50;
  config.eval_interval = 0;
  config.sample_tokens = 0;
  const ranklab::RunPlan plan = ranklab::resolve(config);
  return ranklab::examples::train(ranklab::make_thread_world({.size = ranks}), plan);
}
