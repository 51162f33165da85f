// The model of examples/bring_your_own.h, which says nothing of layouts, in all of them: losses, gradients, weights and
// moments are those of one rank (fp64, 1e-12), and recomputation keeps every bit.
#include <gtest/gtest.h>

#include "core/sim/memory_scope.h"
#include "examples/bring_your_own.h"
#include "tests/support/expect_training.h"
#include "tests/support/small_config.h"

namespace ranklab {
namespace {

struct OwnLayout {
  const char* name;
  ParallelDims dims;
  void (*change)(TrainConfig&) = [](TrainConfig&) {};
};

const OwnLayout kOwnLayouts[] = {
    {"dp4", {.world = 4, .tp = 1}},
    {"tp2", {.world = 2, .tp = 2}, [](TrainConfig& c) { c.sequence_parallel = false; }},
    {"dp2_tp2_sp", {.world = 4, .tp = 2}},
    {"pp4", {.world = 4, .tp = 1, .pp = 4}},
    {"pp2_tp2_zb_h1", {.world = 4, .tp = 2, .pp = 2}, [](TrainConfig& c) { c.pipeline_schedule = "zb-h1"; }},
    {"pp2_zb_v", {.world = 2, .tp = 1, .pp = 2}, [](TrainConfig& c) { c.pipeline_schedule = "zb-v"; }},
    {"pp2_dp2_dualpipe", {.world = 4, .tp = 1, .pp = 2}, [](TrainConfig& c) { c.pipeline_schedule = "dualpipe"; }},
    {"zero1", {.world = 4, .tp = 1}, [](TrainConfig& c) { c.zero_stage = 1; }},
    {"zero2_tp2", {.world = 4, .tp = 2}, [](TrainConfig& c) { c.zero_stage = 2; }},
    {"zero3", {.world = 4, .tp = 1}, [](TrainConfig& c) { c.zero_stage = 3; }},
    {"zero3_pp2_tp2_full",
     {.world = 8, .tp = 2, .pp = 2},
     [](TrainConfig& c) {
       c.zero_stage = 3;
       c.recompute_granularity = "full";
     }},
};

TrainingRecord trained(const TrainConfig& config) {
  const auto make = [](const StackContext& stack, const RunPlan& plan) {
    return std::make_unique<examples::Counter>(stack, plan);
  };
  return record_training(config, {.model = provide_layers(make)});
}

TrainConfig config_of(const OwnLayout& layout) {
  TrainConfig config = small_config();
  config.optimizer = OptimizerKind::kSgd;  // a bias whose gradient is nearly zero: see small_config()
  config.parallel = layout.dims;
  layout.change(config);
  return config;
}

class OwnModel : public testing::TestWithParam<OwnLayout> {};

TEST_P(OwnModel, EqualsOneRank) {
  const TrainConfig config = config_of(GetParam());
  const TrainingRecord got = trained(config);
  EXPECT_TRUE(got.weights.contains({0, "layers.3.up.weight"})) << "its own model";
  expect_same_training(got, trained(on_one_rank(config)), kRounding);
}

INSTANTIATE_TEST_SUITE_P(Layouts, OwnModel, testing::ValuesIn(kOwnLayouts),
                         [](const testing::TestParamInfo<OwnLayout>& row) { return row.param.name; });

TEST(OwnModelRecomputed, KeepsEveryBitInLessMemory) {
  install_booking_allocator();
  TrainConfig config = small_config();
  const TrainingRecord kept = trained(config);
  config.recompute_granularity = "full";
  const TrainingRecord recomputed = trained(config);
  expect_same_training(recomputed, kept, kSameBits);
  EXPECT_LT(recomputed.peak_activation_bytes.at(0), kept.peak_activation_bytes.at(0));
}

}  // namespace
}  // namespace ranklab
