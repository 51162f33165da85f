#include "cli/generate/replica_world.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/comm/process_env.h"

namespace ranklab {
namespace {

bool creates_its_ranks(const TrainConfig& config) {
  return config.can(Capability::kMakesRanks) && read_process_env().world_size <= 1;
}

}  // namespace

void choose_replica_world(const ConfigOptions& options, TrainConfig& config) {
  if (!creates_its_ranks(config)) return;
  ParallelDims& dims = config.parallel;
  const int of_replica = dims.tp * dims.cp, of_pipeline = of_replica * dims.pp;
  if (!options.given("parallel.world_size")) {
    const int experts = config.model.moe.enabled() ? dims.ep * dims.etp : 1;
    if (dims.dp < 1) dims.dp = experts < 1 || of_replica < 1 ? 1 : experts / std::gcd(experts, of_replica);
    dims.world = of_pipeline * dims.dp;
  }
  if (config.train_iters > 0 || options.given("train.global_batch_size") || of_pipeline < 1) return;
  config.global_batch_size =
      int64_t{2} * dims.pp * std::max(dims.world / of_pipeline, 1);  // nothing is trained, but the size must be valid
}

void check_replica(const ConfigOptions& options) {
  TrainConfig config = options.config();
  if (!creates_its_ranks(config)) return;  // its world size is known later
  choose_replica_world(options, config);
  options.resolve(std::move(config));
}

}  // namespace ranklab
