// ZeRO stage 3 from the start: a rank's parameters never take more memory than its shards and the units in use, not
// while the model is created, nor while a checkpoint is read.
#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "core/nn/initial_values.h"
#include "core/optim/optimizer.h"
#include "core/parallel/data/bucket_layout.h"
#include "core/parallel/data/bucket_shard.h"
#include "core/runtime/memory/measure.h"
#include "core/runtime/provide.h"
#include "core/sim/memory_scope.h"
#include "tests/runtime/checkpoint_run.h"

namespace ranklab::checkpoint_runs {
namespace {

constexpr int64_t kLine = kBucketLineElements;
constexpr int64_t kMostBucketsOfUnit = 3;  // those of experts, of norms under sequence parallelism, of the others

// What one rank has of the model, in bytes: with the padding of its buckets.
struct Bytes {
  int64_t whole = 0;
  int64_t most_shards = 0;
  int64_t two_parts = 0;
};

// What is used together: a tied head and modules that predict further tokens need the embedding, too.
std::string part_of(const Parameter& parameter) {
  const std::string& unit = parameter.unit.name;
  return unit.starts_with("layers") ? unit : "ends";
}

Bytes bytes_of(StepContext& context) {
  Bytes out;
  std::map<std::string, int64_t> parts;
  for (const Parameter* parameter : context.model.registry().parameters()) {
    const auto element = static_cast<int64_t>(parameter->data.itemsize());
    const int64_t bytes = (parameter->data.numel() + kLine - 1) / kLine * kLine * element;
    const int sharers = context.ctx.size(parameter->is_expert ? Axis::kEdpShard : Axis::kDpShard);
    const std::string part = part_of(*parameter);
    if (!parts.contains(part)) {
      const int64_t padding = kMostBucketsOfUnit * kLine * element;
      parts[part] = padding * context.ctx.size(Axis::kDp);
      out.most_shards += padding;
    }
    out.whole += bytes;
    out.most_shards += bytes / sharers + kLine * element;
    if (sharers > 1) parts[part] += bytes;
  }
  std::vector<int64_t> sizes;
  for (const auto& [part, bytes] : parts) sizes.push_back(bytes);
  std::sort(sizes.rbegin(), sizes.rend());
  const ModelConfig& model = context.plan.config.model;  // sequence parallelism gathers inputs, too: two at once
  if (context.ctx.size(Axis::kTp) > 1)
    out.two_parts += 2 * 4 * model.seq_length * context.plan.micro_batch_size * model.hidden_size;
  out.two_parts += sizes[0] + (sizes.size() > 1 ? sizes[1] : 0);
  return out;
}

// Trains, and compares what every rank has held with its limit. Checks are made on the ranks' threads.
void expect_shards_only(const Settings& settings, double gathered_bytes_a_byte) {
  install_booking_allocator();
  const RunPlan plan = plan_of(settings);
  RuntimeEngine engine(default_components(make_thread_world({.size = plan.mesh.world_size()}), plan), plan);
  std::mutex mutex;
  int ranks = 0;
  engine.set_finale([&](StepContext& context) {
    const std::lock_guard lock(mutex);
    ++ranks;
    const MemoryBook& book = *thread_memory_book();
    const Bytes bytes = bytes_of(context);
    const int64_t stays = book.bytes(MemoryCategory::kParameters);
    EXPECT_EQ(book.peak_bytes(MemoryCategory::kParameters), stays) << "rank " << context.ctx.global_rank();
    EXPECT_LE(stays, bytes.most_shards);
    EXPECT_LT(stays, bytes.whole);
    EXPECT_GT(book.peak_bytes(MemoryCategory::kGathered), 0);
    EXPECT_LE(static_cast<double>(book.peak_bytes(MemoryCategory::kGathered)),
              gathered_bytes_a_byte * static_cast<double>(bytes.two_parts));
  });
  engine.fit();
  EXPECT_EQ(ranks, plan.mesh.world_size());
}

struct StartCase {
  std::string name;
  Settings settings;
  double gathered_bytes_a_byte = 1;
};
void PrintTo(const StartCase& one, std::ostream* out) { *out << one.name; }

const Settings kStage3 = {{"parallel.zero_stage", "3"}, {"parallel.tp", "1"}, {"parallel.pp", "1"}};
Settings dense(const Settings& more) { return kTinyRun + kDense + kStage3 + more; }
Settings moe(const Settings& more) { return kTinyRun + kMoe + kStage3 + more; }

const std::vector<StartCase> kCases = {
    {"dp8", dense({{"parallel.world_size", "8"}})},
    {"dp4_bf16_untied",
     dense({{"parallel.world_size", "4"}, {"train.bf16", "true"}, {"model.tie_embeddings", "false"}})},
    {"dp4_tp2", dense({{"parallel.world_size", "8"}, {"parallel.tp", "2"}})},
    {"dp4_in_two_groups", dense({{"parallel.world_size", "4"}, {"parallel.replicas", "2"}})},
    {"dp2_pp2_dualpipe", dense({{"parallel.world_size", "4"},
                                {"parallel.pp", "2"},
                                {"train.num_microbatches", "4"},
                                {"parallel.pipeline_schedule", "dualpipe"}})},
    {"dp4_ep2", moe({{"parallel.world_size", "4"}, {"parallel.ep", "2"}})},
    {"dp4_ep4", moe({{"parallel.world_size", "4"}, {"parallel.ep", "4"}})},  // edp is 1: ZeRO shards no experts
    {"dp4_weights_in_8_bits",
     dense({{"parallel.world_size", "4"},
            {"precision.recipe", "mxfp8"},
            {"precision.param_gather", "true"},
            {"model.hidden_size", "64"},
            {"model.ffn_hidden_size", "96"}}),
     1.5},  // codes and what they are made into
};

class ZeroStart : public ::testing::TestWithParam<StartCase> {};

TEST_P(ZeroStart, NeverHoldsMoreThanShardsAndTwoUnits) {
  expect_shards_only(GetParam().settings, GetParam().gathered_bytes_a_byte);
}

TEST_P(ZeroStart, NorWhenACheckpointIsRead) {
  const std::string run = temporary_path("ranklab_zero_start_" + GetParam().name);
  train(GetParam().settings + saving(run), 3);
  expect_shards_only(GetParam().settings + loading(run), GetParam().gathered_bytes_a_byte);
}

INSTANTIATE_TEST_SUITE_P(Layouts, ZeroStart, ::testing::ValuesIn(kCases),
                         [](const auto& one) { return one.param.name; });

// Shards of parameters and of what the optimizer keeps of them; nothing else, and nothing larger on the way.
TEST(ZeroStartMemory, IsThatOfTheStatesThatStay) {
  const RunPlan plan = plan_of(dense({{"parallel.world_size", "4"}, {"train.bf16", "true"}}));
  const auto ranks = measure_memory(default_components(make_thread_world({.size = 4}), plan), plan);
  ASSERT_EQ(ranks.size(), 4u);
  for (const MeasuredMemory& rank : ranks) {
    for (const MemoryCategory category : {MemoryCategory::kParameters, MemoryCategory::kOptimizer}) {
      const auto at = static_cast<size_t>(category);
      EXPECT_EQ(rank.at_start_peak[at], rank.at_end[at]) << name(category);
      EXPECT_EQ(rank.start_highest[at], rank.at_end[at]) << name(category);
    }
    EXPECT_EQ(rank.start_highest[static_cast<size_t>(MemoryCategory::kGathered)], 0);
  }
}

// A user's optimizer that knows nothing of shards, at any stage.
class PlainRuntime : public OptimizerRuntime {
 public:
  std::unique_ptr<RankOptimizer> initialize(CausalLm& model, RankContext& ctx, const RunPlan& plan) const override {
    for (const Parameter* parameter : model.registry().parameters()) {
      EXPECT_FALSE(parameter->unmade) << parameter->name;
      EXPECT_FALSE(is_freed(parameter->data)) << parameter->name;
    }
    RunPlan whole = plan;
    whole.zero_stage = 0;
    const auto sgd = [](std::vector<Parameter*> parameters, const RunPlan&) {
      return make_sgd(std::move(parameters), {.momentum = 0.9});
    };
    return provide_optimizer(sgd)->initialize(model, ctx, whole);
  }
};

std::vector<double> losses_of_plain_runtime(const std::string& zero_stage) {
  const RunPlan plan =
      plan_of(kTinyRun + kDense + Settings{{"parallel.world_size", "2"}, {"parallel.zero_stage", zero_stage}});
  RuntimeComponents parts = default_components(make_thread_world({.size = 2}), plan);
  parts.optimizer_runtime = std::make_shared<PlainRuntime>();
  RuntimeEngine engine(parts, plan);
  const auto record = std::make_shared<RunRecord>();
  engine.add_hook(record);
  engine.fit();
  std::vector<double> losses;
  for (const StepMetrics& step : record->steps) losses.push_back(step.loss);
  return losses;
}

TEST(ZeroStartMemory, OptimizersThatDoNotShardGetWholeParameters) {
  const std::vector<double> losses = losses_of_plain_runtime("3");
  ASSERT_EQ(losses.size(), 6u);
  EXPECT_EQ(losses, losses_of_plain_runtime("0"));
}

}  // namespace
}  // namespace ranklab::checkpoint_runs
