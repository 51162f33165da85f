#include "cli/world/adopt_world.h"

#include "core/base/error.h"

namespace ranklab {

void adopt_world(TrainConfig& config, int size, const ConfigOptions& options) {
  RANKLAB_CHECK(!options.given("parallel.world_size") || config.parallel.world == size, ErrorKind::kInvalidArgument,
                .where = "--world-size", .what = "the launcher started a world of a different size",
                .got = "--world-size " + std::to_string(config.parallel.world) + ", WORLD_SIZE " + std::to_string(size),
                .want = "the same", .fix = "leave --world-size out, or start that many ranks");
  config.parallel.world = size;
  settle_layout(config, options.merged().origins);
  config.parallel.world = size;  // these ranks exist, whatever the sizes of the axes are
}

TrainConfig launched_config(const ConfigOptions& options, const ProcessEnv& env) {
  TrainConfig config = options.config();
  // A world of one rank made by torchrun is intentional; a single task of a cluster job may simulate any number of
  // ranks as threads.
  const bool one_asked = env.world_size == 1 && env.launcher == Launcher::kTorchrun;
  if (env.world_size > 1 || (one_asked && !options.given("parallel.world_size")))
    adopt_world(config, env.world_size, options);
  return config;
}

}  // namespace ranklab
