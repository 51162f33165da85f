// Ranks that share a device against ranks that read each other's memory, with the host as the device: losses, norms and
// every weight after the last step have the same bits, in every kind of layout.
#include <gtest/gtest.h>

#include <functional>

#include "tests/cpu_sim/test_world.h"
#include "tests/equivalence/precision_run.h"

namespace ranklab {
namespace {

TrainingRecord run_on(TestDevice device, const TrainConfig& config) {
  const OnTestDevice here(device);
  return record_training(config);
}

struct DeviceLayout {
  const char* name;
  void (*change)(TrainConfig& config);
};

constexpr DeviceLayout kDeviceLayouts[] = {
    {"dp 8", [](TrainConfig& c) { c.parallel = {.world = 8, .tp = 1, .pp = 1}; }},
    {"dp 8, pairwise",
     [](TrainConfig& c) {
       c.parallel = {.world = 8, .tp = 1, .pp = 1};
       c.accumulation = Accumulation::kPairwise;
     }},
    {"dp 3",
     [](TrainConfig& c) {
       c.parallel = {.world = 3, .tp = 1, .pp = 1};
       c.global_batch_size = 12;
     }},
    {"tp 4", [](TrainConfig& c) { c.parallel = {.world = 4, .tp = 4, .pp = 1}; }},
    {"pp 4, zb-h1",
     [](TrainConfig& c) {
       c.parallel = {.world = 4, .tp = 1, .pp = 4};
       c.pipeline_schedule = "zb-h1";
     }},
    {"pp 2, dualpipe-v",
     [](TrainConfig& c) {
       c.parallel = {.world = 2, .tp = 1, .pp = 2};
       c.pipeline_schedule = "dualpipe-v";
     }},
    {"dp 2 tp 2 pp 2", [](TrainConfig& c) { c.parallel = {.world = 8, .tp = 2, .pp = 2}; }},
    {"dp 2 tp 2 pp 2, bf16",
     [](TrainConfig& c) {
       c.parallel = {.world = 8, .tp = 2, .pp = 2};
       c.bf16 = true;
     }},
    {"ZeRO 1",
     [](TrainConfig& c) {
       c.parallel = {.world = 4, .tp = 1, .pp = 1};
       c.zero_stage = 1;
     }},
    {"ZeRO 2",
     [](TrainConfig& c) {
       c.parallel = {.world = 4, .tp = 1, .pp = 1};
       c.zero_stage = 2;
     }},
    {"ZeRO 3, tp 2",
     [](TrainConfig& c) {
       c.parallel = {.world = 8, .tp = 2, .pp = 1};
       c.zero_stage = 3;
     }},
};

TrainConfig device_config(const DeviceLayout& layout) {
  TrainConfig config = small_run(1, 1);
  config.train_iters = 4;
  config.ddp_bucket_bytes = 8192;  // several buckets
  layout.change(config);
  return config;
}

TEST(Device, MovesTheBitsOfTheHost) {
  for (const DeviceLayout& layout : kDeviceLayouts) {
    const TrainConfig config = device_config(layout);
    SCOPED_TRACE(layout.name);
    expect_same_training(run_on(TestDevice::kQueues, config), run_on(TestDevice::kHost, config), kSameBits);
  }
}

TEST(Device, MovesTokensToTheirExperts) {
  TrainConfig config = small_run(4, 1);
  config.train_iters = 3;
  config.model.moe = {
      .num_experts = 8, .topk = 2, .ffn_hidden_size = 16, .shared_ffn_hidden_size = 16, .first_dense_layers = 1};
  config.parallel.ep = 4;
  for (const char* dispatcher : {"alltoall", "allgather", "dedup"}) {
    for (const bool overlap : {false, true}) {
      config.moe_dispatcher = dispatcher;
      config.overlap_moe = overlap;
      config.num_microbatches = overlap ? 2 : 1;
      SCOPED_TRACE(dispatcher);
      expect_same_training(run_on(TestDevice::kQueues, config), run_on(TestDevice::kHost, config), kSameBits);
    }
  }
}

// The clock is of the simulated machine, whatever moves the bytes here.
TEST(Device, ShowsTheSameTimes) {
  for (const DeviceLayout& layout : kDeviceLayouts) {
    const TrainingRecord queues = run_on(TestDevice::kQueues, device_config(layout)),
                         host = run_on(TestDevice::kHost, device_config(layout));
    for (size_t i = 0; i < host.steps.size(); ++i)
      EXPECT_EQ(queues.steps[i].virtual_step_ms, host.steps[i].virtual_step_ms) << layout.name << ", step " << i;
  }
}

}  // namespace
}  // namespace ranklab
