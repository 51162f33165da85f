// The model of examples/bring_your_own.h, which says nothing of layouts, in all of them: losses, gradients, weights and
// moments are those of one rank (fp64, 1e-12), and recomputation keeps every bit.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "backends/cpu_sim/thread_world.h"
#include "core/runtime/engine.h"
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

TrainResult run_of(TrainConfig config, ParallelDims dims, const std::string& folder) {
  config.parallel = dims;
  config.sample_tokens = 12;
  config.save_dir = folder;
  config.load = "auto";
  const RunPlan plan = resolve(config);
  RuntimeComponents parts = default_components(make_thread_world({.size = dims.world}), plan);
  parts.model_provider = provide_layers(
      [](const StackContext& stack, const RunPlan& own) { return std::make_unique<examples::Counter>(stack, own); });
  return RuntimeEngine(parts, plan).fit();
}

// Two steps in one layout, two more in another, against four on one rank: losses, and the text that the model writes.
TEST(OwnModel, GoesOnFromACheckpointOfAnotherLayoutAndWritesTheSameText) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / ("own_model_" + std::to_string(::getpid()));
  TrainConfig config = small_config();
  config.optimizer = OptimizerKind::kSgd;
  config.lr_decay = LrDecay::kConstant;
  config.train_iters = 4;
  const TrainResult whole = run_of(config, {.world = 1, .tp = 1}, folder / "whole");
  TrainConfig half = config;
  half.train_iters = 2;
  half.zero_stage = 3;
  half.recompute_granularity = "full";
  run_of(half, {.world = 8, .tp = 2, .pp = 2}, folder / "parts");
  const TrainResult rest = run_of(config, {.world = 4, .tp = 1, .pp = 2}, folder / "parts");
  EXPECT_LT(rest.first_loss, whole.first_loss) << "it goes on, it does not begin again";
  EXPECT_NEAR(rest.last_loss, whole.last_loss, 1e-12);
  EXPECT_NE(whole.first_loss, whole.last_loss);
  EXPECT_EQ(rest.sample, whole.sample);
  EXPECT_GE(whole.sample.size(), 12u);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace ranklab
