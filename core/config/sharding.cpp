#include "core/config/sharding.h"

#include <algorithm>
#include <string>

#include "core/base/error.h"

namespace ranklab {
namespace {

constexpr int64_t kUnset = -1;
constexpr int64_t kHighest = 3;

int64_t stage_of_strategy(const std::string& strategy) {
  if (strategy == "no_shard") return 0;
  if (strategy == "optim") return 1;
  if (strategy == "optim_grads") return 2;
  return strategy == "optim_grads_params" ? 3 : kUnset;
}

void check_there(const std::string& asked, int64_t stage) {
  RANKLAB_CHECK(stage >= kUnset && stage <= kHighest, ErrorKind::kInvalidArgument, .where = "config",
                .what = "--zero-stage is out of range", .got = asked, .want = "0, 1, 2 or 3",
                .fix = "leave it out for none");
}

}  // namespace

int resolve_zero_stage(const TrainConfig& c) {
  const std::string number = "--zero-stage " + std::to_string(c.zero_stage);
  const std::string words = "--data-parallel-sharding-strategy " + c.sharding_strategy;
  const int64_t named = stage_of_strategy(c.sharding_strategy);
  check_there(number, c.zero_stage);
  check_there(words, named);
  RANKLAB_CHECK(c.zero_stage == kUnset || named == kUnset || c.zero_stage == named, ErrorKind::kInvalidArgument,
                .where = "config", .what = "two settings ask for different ZeRO stages", .got = number + ", " + words,
                .want = "--zero-stage " + std::to_string(named), .fix = "leave one of them out");
  const int64_t stage = std::max(c.zero_stage, named);
  if (!c.use_distributed_optimizer) return static_cast<int>(std::max<int64_t>(stage, 0));
  RANKLAB_CHECK(stage != 0, ErrorKind::kInvalidArgument, .where = "config",
                .what = "--use-distributed-optimizer shares out optimizer states, and another setting forbids it",
                .got = "--use-distributed-optimizer, " + (c.zero_stage == 0 ? number : words),
                .want = "--zero-stage 1, 2 or 3", .fix = "leave one of them out");
  return static_cast<int>(std::max<int64_t>(stage, 1));
}

}  // namespace ranklab
