// Any mesh: world = tp x dp x cp x pp ranks, laid out by the engine; every layout gives the same losses as one rank.
// With --ep the model is a small DeepSeek-V3 with its experts sharded over ep of the ranks of a pipeline stage.
//   train_4d [--tp N] [--dp N] [--cp N] [--pp N] [--ep N [--etp N]] [--steps N]
#include "backends/cpu_sim/thread_world.h"
#include "core/spec/presets.h"
#include "examples/example_args.h"
#include "examples/example_hooks.h"

int run(int argc, char** argv) {
  ranklab::TrainConfig config;
  ranklab::ParallelDims& mesh = config.parallel;
  mesh = {.dp = 1};
  int steps = 50, ep = 0;
  ranklab::examples::read_numbers(argc, argv,
                                  {{"--tp", &mesh.tp},
                                   {"--dp", &mesh.dp},
                                   {"--cp", &mesh.cp},
                                   {"--pp", &mesh.pp},
                                   {"--ep", &ep},
                                   {"--etp", &mesh.etp},
                                   {"--steps", &steps}});
  if (ep > 0) {
    mesh.ep = ep;
    config.model = ranklab::model_preset("deepseek_v3_tiny");
  }
  mesh.world = mesh.tp * mesh.dp * mesh.cp * mesh.pp;
  config.global_batch_size = 8;
  config.train_iters = steps;
  config.eval_interval = 0;
  config.sample_tokens = 0;
  const ranklab::RunPlan plan = ranklab::resolve(config);
  for (int rank = 0; rank < plan.mesh.world_size(); ++rank) {
    std::printf("rank %d: %s\n", rank, plan.mesh.label(rank).c_str());
  }
  return ranklab::examples::train(ranklab::make_thread_world({.size = mesh.world}), plan);
}

int main(int argc, char** argv) {
  return ranklab::examples::exit_code_of([&] { return run(argc, argv); });
}
