#include "core/config/recompute_choice.h"

#include <algorithm>
#include <string>

#include "core/base/error.h"

namespace ranklab {

void check_recompute(const RunPlan& plan) {
  const TrainConfig& c = plan.config;
  const std::string flag = "--recompute-num-layers " + std::to_string(c.recompute_num_layers);
  RANKLAB_CHECK(c.recompute_num_layers >= 0, ErrorKind::kInvalidArgument, .where = "config",
                .what = "--recompute-num-layers must not be negative", .got = std::to_string(c.recompute_num_layers),
                .want = "0 or more", .fix = "leave it out");
  RANKLAB_CHECK(c.recompute_num_layers == 0 || c.recompute_granularity == "full", ErrorKind::kInvalidArgument,
                .where = "config", .what = "--recompute-num-layers counts layers that are recomputed as a whole",
                .got = flag + ", --recompute-granularity " + c.recompute_granularity,
                .want = "--recompute-granularity full, or no --recompute-num-layers",
                .fix = "add that, or leave it out");
  const int64_t most = *std::max_element(plan.stage_layers.begin(), plan.stage_layers.end());
  RANKLAB_CHECK(c.recompute_num_layers <= most, ErrorKind::kInvalidArgument, .where = "config",
                .what = "--recompute-num-layers is more than a pipeline stage has",
                .got = flag + ", at most " + std::to_string(most) + " layers a stage",
                .want = "at most " + std::to_string(most), .fix = "lower it, or leave it out for all layers");
}

RecomputePolicy recompute_policy(const TrainConfig& c) {
  RecomputePolicy policy{.num_layers = c.recompute_num_layers};
  if (c.recompute_granularity == "selective") policy.granularity = Recompute::kSelective;
  if (c.recompute_granularity == "full") policy.granularity = Recompute::kFull;
  if (c.recompute_method == "uniform") policy.method = RecomputeMethod::kUniform;
  return policy;
}

}  // namespace ranklab
