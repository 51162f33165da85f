// Trains the model, data and optimizer of bring_your_own.h in any layout. With --dry-run it trains nothing, but
// predicts the time, memory and traffic of a step, for as many ranks as you like.
//   bring_your_own [--dry-run] [--steps N] [--dp N] [--tp N] [--pp N] [--zero-stage N] [--recompute 1]
#include "examples/bring_your_own.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu_sim/thread_world.h"
#include "examples/example_args.h"
#include "examples/example_hooks.h"
#include "examples/example_plan.h"

namespace ranklab {

int run(int argc, char** argv) {
  const bool plans = argc > 1 && std::strcmp(argv[1], "--dry-run") == 0;
  if (plans) --argc, ++argv;
  TrainConfig config;
  config.parallel = {.tp = 1, .pp = 1};
  int steps = 50, dp = 4, zero_stage = 0, recompute = 0;
  examples::read_numbers(argc, argv,
                         {{"--steps", &steps},
                          {"--dp", &dp},
                          {"--tp", &config.parallel.tp},
                          {"--pp", &config.parallel.pp},
                          {"--zero-stage", &zero_stage},
                          {"--recompute", &recompute}});
  config.zero_stage = zero_stage;
  config.model.seq_length = 64;
  config.model.hidden_size = 32;
  config.model.num_layers = 4;
  config.params_dtype = "fp64";
  config.recompute_granularity = recompute != 0 ? "full" : "none";
  config.parallel.world = dp * config.parallel.tp * config.parallel.pp;
  config.global_batch_size = std::max(16, dp);
  config.train_iters = steps;
  config.lr = 0.04;
  config.eval_interval = 0;
  config.sample_tokens = 0;
  const RunPlan plan = resolve(config);
  if (plans) return examples::dry_run(examples::own_components(default_parts()), plan);
  const std::shared_ptr<World> world = make_thread_world({.size = config.parallel.world});
  return examples::train(examples::own_components(default_components(world, plan)), plan);
}

}  // namespace ranklab

int main(int argc, char** argv) {
  return ranklab::examples::exit_code_of([&] { return ranklab::run(argc, argv); });
}
