// Training through the NCCL backend, without a GPU, equals training on one rank: every schedule's messages in lanes,
// and the collectives of all axes. Losses, gradients, weights and moments are compared, in fp64.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/config/one_rank.h"
#include "core/pipeline/schedules.h"
#include "tests/cuda/stand_in/world.h"
#include "tests/support/expect_training.h"
#include "tests/support/model_variants.h"
#include "tests/support/small_config.h"

namespace ranklab::stand_in {
namespace {

TrainingRecord over_nccl(TrainConfig config, const CudaWorldOptions& options = {}) {
  config.backend = "cuda";
  return record_training(
      config, {.make_world = [options](int size) { return std::make_unique<ThreadsOverNccl>(size, options); }});
}

TEST(NcclTraining, EveryScheduleTrainsAsOneRank) {
  TrainConfig config = small_config();
  config.model.num_layers = 8;
  config.num_microbatches = 8;
  const TrainingRecord want = record_training(config);
  for (const ScheduleKind& kind : schedule_kinds()) {
    SCOPED_TRACE(kind.name);
    expect_same_training(over_nccl(with_pipeline(config, kind.name, 4, kind.chunks == 0 ? 2 : 1)), want, kRounding);
  }
}

struct Layout {
  const char* name;
  ParallelDims dims;
  void (*change)(TrainConfig&) = [](TrainConfig&) {};
};

void experts(TrainConfig& c) { expert_variants().front().change(c.model); }

const Layout kLayouts[] = {
    {"dp4, ZeRO 1", {.world = 4}, [](TrainConfig& c) { c.zero_stage = 1; }},
    {"dp4, ZeRO 2", {.world = 4}, [](TrainConfig& c) { c.zero_stage = 2; }},
    {"dp4, ZeRO 3", {.world = 4}, [](TrainConfig& c) { c.zero_stage = 3; }},
    {"dp2 tp2 pp2", {.world = 8, .tp = 2, .pp = 2}, [](TrainConfig& c) { c.sequence_parallel = true; }},
    {"cp2 tp2", {.world = 4, .tp = 2, .cp = 2}},
    {"ep4", {.world = 4, .ep = 4}, experts},
    {"dp2 tp2 pp2 ep4", {.world = 8, .tp = 2, .pp = 2, .ep = 4}, experts},
    {"dp2 tp2, attention recomputed",
     {.world = 4, .tp = 2},
     [](TrainConfig& c) { c.recompute_granularity = "selective"; }},
};

TEST(NcclTraining, EveryAxisTrainsAsOneRank) {
  for (const Layout& layout : kLayouts) {
    SCOPED_TRACE(layout.name);
    TrainConfig config = small_config();
    config.parallel = layout.dims;
    layout.change(config);
    expect_same_training(over_nccl(config), record_training(on_one_rank(config)), kRounding);
  }
}

int64_t spans_named(const TrainingRecord& record, const std::string& name) {
  int64_t count = 0;
  for (const RankTrace& trace : record.traces)
    count += std::ranges::count_if(trace.events, [&](const auto& event) {
      return event.kind == EventKind::kCompute && trace.names[event.name] == name;
    });
  return count;
}

// A forward and a backward take turns on the rank's stream, each while the other's tokens are sent.
TEST(NcclTraining, InterleavedMicrobatchesHaveTheBitsOfOthers) {
  const Layout layouts[] = {
      {"ep4", {.world = 4, .ep = 4}},
      {"pp2 ep2", {.world = 4, .pp = 2, .ep = 2}},
      {"pp2 ep2, dualpipe-v",
       {.world = 4, .pp = 2, .ep = 2},
       [](TrainConfig& c) { c.pipeline_schedule = "dualpipe-v"; }},
      {"tp2 ep4, ZeRO 3", {.world = 4, .tp = 2, .ep = 4}, [](TrainConfig& c) { c.zero_stage = 3; }},
      {"ep2, recomputed", {.world = 2, .ep = 2}, [](TrainConfig& c) { c.recompute_granularity = "full"; }},
      {"ep2, attention recomputed",
       {.world = 2, .ep = 2},
       [](TrainConfig& c) { c.recompute_granularity = "selective"; }},
  };
  for (const Layout& layout : layouts) {
    SCOPED_TRACE(layout.name);
    TrainConfig config = small_config();
    experts(config);
    config.model.num_layers = 4;
    config.global_batch_size = 16;
    config.num_microbatches = 4;
    config.parallel = layout.dims;
    config.trace = true;
    layout.change(config);
    const TrainingRecord want = over_nccl(config, {.canonical_reductions = true});
    config.overlap_moe = true;
    const TrainingRecord got = over_nccl(config, {.canonical_reductions = true});
    expect_same_training(got, want, Tolerance{});
    EXPECT_GT(spans_named(got, "F"), spans_named(want, "F")) << "no forward was interrupted";
  }
}

// With canonical reductions a sum does not depend on how it is scattered.
TEST(NcclTraining, CanonicalReductionsGiveTheSameBitsInEveryZeroStage) {
  TrainConfig config = small_config();
  config.parallel = {.world = 8, .tp = 2};
  const TrainingRecord want = over_nccl(config, {.canonical_reductions = true});
  for (const int stage : {1, 2, 3}) {
    SCOPED_TRACE(stage);
    config.zero_stage = stage;
    expect_same_training(over_nccl(config, {.canonical_reductions = true}), want, Tolerance{});
  }
}

}  // namespace
}  // namespace ranklab::stand_in
