// The training loop written out, with the five calls of by_hand.h, on every rank of any mesh.
//   train_by_hand [--steps N] [--dp N] [--tp N] [--pp N] [--zero-stage N]
#include <cstdio>

#include "backends/cpu_sim/thread_world.h"
#include "core/config/lr_choice.h"
#include "examples/by_hand.h"
#include "examples/example_args.h"

namespace ranklab::examples {

int run(int argc, char** argv) {
  TrainConfig config;
  config.parallel = {.tp = 1, .pp = 1};
  int steps = 50, dp = 1, zero_stage = 0;
  read_numbers(argc, argv,
               {{"--steps", &steps},
                {"--dp", &dp},
                {"--tp", &config.parallel.tp},
                {"--pp", &config.parallel.pp},
                {"--zero-stage", &zero_stage}});
  config.parallel.world = dp * config.parallel.tp * config.parallel.pp;
  config.zero_stage = zero_stage;
  config.global_batch_size = 8;
  config.train_iters = steps;
  config.eval_interval = 0;
  config.sample_tokens = 0;
  config.trace = false;
  const RunPlan plan = resolve(config);
  const std::shared_ptr<World> world = make_thread_world({.size = config.parallel.world});
  const std::shared_ptr<DataProvider> text = default_components(world, plan).data_provider;

  double first = 0, last = 0;  // on rank 0
  world->run([&](Endpoint& endpoint) {
    const auto rank = init_distributed(endpoint, plan);
    const auto model = create_model(*rank);
    const auto optimizer = create_optimizer(*model, *rank);
    const auto data = text->build_data(rank->ctx, plan);
    for (int step = 0; step < steps; ++step) {
      const double loss = forward_backward(*model, *optimizer, *data, *rank, step);
      const double norm = optimizer_step(*model, *optimizer, lr_schedule_of(plan.config).at(step));
      if (endpoint.global_rank() != 0) continue;
      std::printf("step %3d  loss %.4f  grad norm %.3f\n", step, loss, norm);
      if (step == 0) first = loss;
      last = loss;
    }
  });
  std::printf("%d steps: loss %.4f -> %.4f\n", steps, first, last);
  return last < first ? 0 : 1;
}

}  // namespace ranklab::examples

int main(int argc, char** argv) {
  return ranklab::examples::exit_code_of([&] { return ranklab::examples::run(argc, argv); });
}
