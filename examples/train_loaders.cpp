// A model, an optimizer, a configuration, and two loaders: engine.fit(train, validation, steps). The model and the
// optimizer are those of bring_your_own.h; the loaders are functions, which any rank may call for any batch.
//   train_loaders [steps] [ranks]
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "backends/cpu_sim/thread_world.h"
#include "core/runtime/checkpoint/manager.h"
#include "examples/bring_your_own.h"
#include "examples/example_args.h"
#include "examples/example_hooks.h"

namespace ranklab::examples {

using Loader = MakeBatch;

class Engine {
 public:
  Engine(MakeLayers model, MakeOptimizer optimizer, const TrainConfig& config)
      : model_(std::move(model)), optimizer_(std::move(optimizer)), config_(config) {}

  TrainResult fit(Loader train, Loader validation, int64_t steps) {
    config_.train_iters = steps;
    const RunPlan plan = resolve(config_);
    RuntimeComponents parts = default_parts();
    parts.world = make_thread_world({.size = config_.parallel.world});
    parts.model_provider = provide_layers(model_);
    parts.optimizer_runtime = provide_optimizer(optimizer_);
    parts.data_provider = provide_data("loaders", std::move(train), std::move(validation));
    parts.checkpoint_manager = no_checkpoints();
    RuntimeEngine engine(std::move(parts), plan);
    engine.add_hook(std::make_shared<PrintSteps>());
    return engine.fit();
  }

 private:
  MakeLayers model_;
  MakeOptimizer optimizer_;
  TrainConfig config_;
};

// Sequences that training has not seen: they count, too, but start at other numbers.
Batch held_back(const RankContext& ctx, const RunPlan& plan, int64_t index, int64_t microbatch) {
  return counting(ctx, plan, 1'000'003 + index, microbatch);
}

int run(int argc, char** argv) {
  TrainConfig config;
  config.parallel = {.world = argc > 2 ? std::atoi(argv[2]) : 4};
  config.model.seq_length = 64;
  config.model.hidden_size = 32;
  config.global_batch_size = 16;
  config.lr = 0.04;
  config.eval_interval = 2;
  config.eval_iters = 1;
  config.sample_tokens = 0;

  Engine engine([](const StackContext& stack, const RunPlan& plan) { return std::make_unique<Counter>(stack, plan); },
                [](std::vector<Parameter*> parameters, const RunPlan&) {
                  return std::make_unique<SignSgd>(std::move(parameters));
                },
                config);
  const TrainResult result = engine.fit(counting, held_back, argc > 1 ? std::atoi(argv[1]) : 50);
  std::printf("%lld steps: loss %.4f -> %.4f\n", static_cast<long long>(result.steps_done), result.first_loss,
              result.last_loss);
  return result.last_loss < result.first_loss ? 0 : 1;
}

}  // namespace ranklab::examples

int main(int argc, char** argv) {
  return ranklab::examples::exit_code_of([&] { return ranklab::examples::run(argc, argv); });
}
