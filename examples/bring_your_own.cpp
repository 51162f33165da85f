// Trains the model, data and optimizer of bring_your_own.h on ranks that share the batch.
//   bring_your_own [steps] [ranks]
#include "examples/bring_your_own.h"

#include <cstdlib>

#include "backends/cpu_sim/thread_world.h"
#include "examples/example_hooks.h"

int main(int argc, char** argv) {
  using namespace ranklab;
  const int ranks = argc > 2 ? std::atoi(argv[2]) : 4;
  TrainConfig config;
  config.parallel = {.world = ranks};
  config.model.seq_length = 64;
  config.global_batch_size = 16;
  config.train_iters = argc > 1 ? std::atoi(argv[1]) : 50;
  config.lr = 0.04;
  config.eval_interval = 0;
  config.sample_tokens = 0;
  const RunPlan plan = resolve(config);

  RuntimeComponents parts = default_components(make_thread_world({.size = ranks}), plan);
  parts.model_provider =
      provide_model([](RankContext& ctx, const RunPlan& p) { return std::make_unique<examples::Counter>(ctx, p); });
  parts.data_provider = provide_data("counting", examples::counting);
  parts.optimizer_runtime = provide_optimizer([](std::vector<Parameter*> parameters, const RunPlan&) {
    return std::make_unique<examples::SignSgd>(std::move(parameters));
  });
  return examples::train(std::move(parts), plan);
}
