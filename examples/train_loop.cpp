// A run as the user's own loop: the loop gets the metrics of each step, and its body saves checkpoints when it wants
// to.
//   train_loop [steps] [ranks] [folder for checkpoints]
#include <cstdio>
#include <cstdlib>

#include "backends/cpu_sim/thread_world.h"
#include "core/runtime/trainer.h"
#include "examples/example_args.h"

namespace ranklab {

int run(int argc, char** argv) {
  TrainConfig config;
  config.parallel = {.world = argc > 2 ? std::atoi(argv[2]) : 4};
  config.global_batch_size = 8;
  config.train_iters = argc > 1 ? std::atoi(argv[1]) : 50;
  config.eval_interval = 0;
  config.sample_tokens = 0;
  if (argc > 3) config.save_dir = argv[3];
  const RunPlan plan = resolve(config);

  Trainer trainer(default_components(make_thread_world({.size = config.parallel.world}), plan), plan);
  double first = 0, last = 0;
  for (const StepMetrics& metrics : trainer.train()) {
    std::printf("step %3lld  loss %.4f  grad norm %.3f\n", static_cast<long long>(metrics.step), metrics.loss,
                metrics.grad_norm);
    if (metrics.step == 0) first = metrics.loss;
    last = metrics.loss;
    if (!config.save_dir.empty() && metrics.step % 2 == 1) trainer.save_checkpoint();
  }
  const TrainResult result = trainer.shutdown();
  std::printf("%lld steps: loss %.4f -> %.4f\n", static_cast<long long>(result.steps_done), first, last);
  return last < first ? 0 : 1;
}

}  // namespace ranklab

int main(int argc, char** argv) {
  return ranklab::examples::exit_code_of([&] { return ranklab::run(argc, argv); });
}
