#include "core/config/sharding.h"

#include <algorithm>

#include "core/base/error.h"

namespace ranklab {
namespace {

constexpr int64_t kUnset = -1;

int64_t stage_of_strategy(const std::string& strategy) {
  const auto is_it = [&](const ZeroStage& stage) { return stage.strategy == strategy; };
  const auto row = std::find_if(kZeroStages.begin(), kZeroStages.end(), is_it);
  return row == kZeroStages.end() ? kUnset : row - kZeroStages.begin();
}

bool has_shard_groups(const RunPlan& plan) {
  return std::max(plan.mesh.size(Axis::kDpShard), plan.mesh.size(Axis::kEdpShard)) > 1;
}

}  // namespace

int resolve_zero_stage(const TrainConfig& c) {
  const std::string number = "--zero-stage " + std::to_string(c.zero_stage);
  const std::string words = "--data-parallel-sharding-strategy " + c.sharding_strategy;
  const int64_t named = stage_of_strategy(c.sharding_strategy);
  RANKLAB_CHECK(c.zero_stage >= kUnset && c.zero_stage < std::ssize(kZeroStages), ErrorKind::kInvalidArgument,
                .where = "config", .what = "--zero-stage is out of range", .got = number, .want = zero_stage_numbers(0),
                .fix = "leave it out for none");
  RANKLAB_CHECK(c.zero_stage == kUnset || named == kUnset || c.zero_stage == named, ErrorKind::kInvalidArgument,
                .where = "config", .what = "two settings ask for different ZeRO stages", .got = number + ", " + words,
                .want = "--zero-stage " + std::to_string(named), .fix = "leave one of them out");
  const int64_t stage = std::max(c.zero_stage, named);
  if (!c.use_distributed_optimizer) return static_cast<int>(std::max<int64_t>(stage, 0));
  RANKLAB_CHECK(stage != 0, ErrorKind::kInvalidArgument, .where = "config",
                .what = "--use-distributed-optimizer shards optimizer states, and another setting forbids it",
                .got = "--use-distributed-optimizer, " + (c.zero_stage == 0 ? number : words),
                .want = "--zero-stage " + zero_stage_numbers(1), .fix = "leave one of them out");
  return static_cast<int>(std::max<int64_t>(stage, 1));
}

std::string zero_stage_numbers(size_t first) {
  std::string text = std::to_string(first);
  for (size_t i = first + 1; i < kZeroStages.size(); ++i)
    text += (i + 1 == kZeroStages.size() ? " or " : ", ") + std::to_string(i);
  return text;
}

bool shards_gradients(const RunPlan& plan) { return plan.zero().gradients && has_shard_groups(plan); }

bool overlaps_param_gather(const RunPlan& plan) {
  const ZeroStage& zero = plan.zero();
  const TrainConfig& c = plan.config;
  return c.overlap_param_gather && !c.cuda_graph && zero.optimizer && !zero.parameters && has_shard_groups(plan);
}

bool accumulates_whole_gradients(const RunPlan& plan) {
  return shards_gradients(plan) && plan.num_microbatches > 1 && plan.config.grad_sync == GradSync::kStep;
}

}  // namespace ranklab
