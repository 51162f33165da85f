// Functions of a program that see the tensors of modules, on every rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "core/base/error.h"
#include "core/sim/aten.h"
#include "tests/runtime/tiny_run.h"

namespace ranklab {
namespace {

TEST(ModuleWatch, SeesForwardsAndBackwardsOfItsPatternOnEveryRank) {
  TrainConfig config = tiny_config(8, 2);
  config.parallel.pp = 2;
  config.train_iters = 2;
  RuntimeEngine engine = tiny_engine(config);
  struct Seen {
    int calls = 0;
    std::vector<int64_t> shape;
  };
  std::mutex mutex;
  std::map<std::tuple<int, std::string, ModuleTensor>, Seen> seen;
  engine.add_hook("layers.*.attention", [&](const ModuleCall& call) {
    const std::lock_guard lock(mutex);
    Seen& one = seen[{call.ctx.global_rank(), call.path, call.kind}];
    ++one.calls;
    if (call.tensor.defined()) one.shape = call.tensor.sizes().vec();
    EXPECT_GE(call.step, 0);
    EXPECT_LT(call.step, 2);
    EXPECT_GE(call.microbatch, 0);
  });
  engine.fit();
  const RunPlan plan = resolve(config);
  EXPECT_EQ(seen.size(), 8u * 1 * 4);  // each rank has one of the two layers
  for (const auto& [key, one] : seen) {
    const auto& [rank, path, kind] = key;
    EXPECT_EQ(path, plan.mesh.coordinate(Axis::kPp, rank) == 0 ? "layers.0.attention" : "layers.1.attention");
    EXPECT_EQ(one.calls, 2 * plan.num_microbatches) << path << " " << name(kind);
    EXPECT_EQ(one.shape, (std::vector<int64_t>{8, plan.micro_batch_size, 32}));  // sequence parallelism halves 16
  }
}

TEST(ModuleWatch, ChangesNoBitAndNoVirtualTime) {
  std::vector<StepMetrics> runs;
  for (const bool watched : {false, true}) {
    RuntimeEngine engine = tiny_engine(tiny_config(4, 2));
    const auto hook = std::make_shared<RecordingHook>();
    engine.add_hook(hook);
    if (watched)
      engine.add_hook("*", [](const ModuleCall& call) {
        if (call.tensor.defined() && call.tensor.is_floating_point()) call.tensor.abs().sum();
      });
    engine.fit();
    runs.push_back(hook->steps.back());
  }
  EXPECT_EQ(runs[0].loss, runs[1].loss);
  EXPECT_EQ(runs[0].grad_norm, runs[1].grad_norm);
  EXPECT_EQ(runs[0].virtual_step_ms, runs[1].virtual_step_ms);
}

TEST(ModuleWatch, NamesTheNearestModule) {
  RuntimeEngine engine = tiny_engine(tiny_config(2, 1));
  engine.add_hook("layers.0.atention", [](const ModuleCall&) {});
  try {
    engine.fit();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.what(), testing::HasSubstr("did you mean 'layers.0.attention'?"));
  }
}

}  // namespace
}  // namespace ranklab
