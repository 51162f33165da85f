#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/base/error.h"
#include "core/base/numbers/philox.h"
#include "tests/runtime/tiny_run.h"

namespace ranklab {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

TEST(Engine, CallsHooksInOrderOnOneRankOnly) {
  TrainConfig config = tiny_config(4, 2);
  config.train_iters = 2;
  config.eval_interval = 2;
  config.eval_iters = 1;
  RuntimeEngine engine = tiny_engine(config);
  const auto hook = std::make_shared<RecordingHook>();
  engine.add_hook(hook);
  engine.fit();
  EXPECT_THAT(hook->calls, ElementsAre("begin", "step 0", "end 0", "step 1", "end 1", "validation 1", "done"));
}

TEST(Engine, LearnsTheGeneratedSentences) {
  TrainConfig config = tiny_config(2, 2);
  config.train_iters = 60;
  config.lr = 1e-2;
  RuntimeEngine engine = tiny_engine(config);
  const TrainResult result = engine.fit();
  EXPECT_NEAR(result.first_loss, std::log(256.0), 0.2);  // an untrained model knows nothing
  EXPECT_LT(result.last_loss, 3.0);
  EXPECT_EQ(result.steps_done, 60);
}

// The same seed, data and global batch: the loss curve may differ by rounding only.
TEST(Engine, EveryLayoutTrainsTheSameModel) {
  std::vector<std::vector<StepMetrics>> curves;
  for (const auto& [world, tp, micro] :
       {std::tuple{1, 1, 0}, std::tuple{8, 1, 0}, std::tuple{4, 4, 2}, std::tuple{8, 2, 1}}) {
    TrainConfig config = tiny_config(world, tp);
    config.micro_batch_size = micro;
    config.params_dtype = "fp64";
    config.eval_interval = 2;
    RuntimeEngine engine = tiny_engine(config);
    const auto hook = std::make_shared<RecordingHook>();
    engine.add_hook(hook);
    engine.fit();
    curves.push_back(hook->steps);
    for (size_t i = 0; i < hook->steps.size(); ++i) {
      EXPECT_NEAR(hook->steps[i].loss, curves[0][i].loss, 1e-11 * curves[0][i].loss)
          << "world " << world << " tp " << tp;
      EXPECT_NEAR(hook->steps[i].grad_norm, curves[0][i].grad_norm, 1e-10 * curves[0][i].grad_norm);
      EXPECT_EQ(hook->steps[i].tokens, 8 * 16);
    }
  }
}

TEST(Engine, ASeedGivesTheSameRunTwiceIncludingVirtualTime) {
  std::vector<std::shared_ptr<RecordingHook>> hooks;
  std::vector<TrainResult> results;
  for (int run = 0; run < 2; ++run) {
    TrainConfig config = tiny_config(8, 2);
    config.model.dropout = 0.1;
    config.sample_tokens = 20;
    RuntimeEngine engine = tiny_engine(config);
    hooks.push_back(std::make_shared<RecordingHook>());
    engine.add_hook(hooks.back());
    results.push_back(engine.fit());
  }
  for (size_t i = 0; i < hooks[0]->steps.size(); ++i) {
    EXPECT_EQ(hooks[0]->steps[i].loss, hooks[1]->steps[i].loss);
    EXPECT_EQ(hooks[0]->steps[i].grad_norm, hooks[1]->steps[i].grad_norm);
    EXPECT_EQ(hooks[0]->steps[i].virtual_step_ms, hooks[1]->steps[i].virtual_step_ms);
    EXPECT_GT(hooks[0]->steps[i].virtual_step_ms, 0);
  }
  EXPECT_EQ(results[0].sample, results[1].sample);
  EXPECT_EQ(results[0].sample.size(), std::string("And the ").size() + 20);
}

TEST(Engine, AStopRequestEndsAllRanksAfterTheStep) {
  TrainConfig config = tiny_config(4, 2);
  config.train_iters = 100;
  RuntimeEngine engine = tiny_engine(config);
  int asked = 0;
  engine.set_stop_request([&] { return ++asked == 3; });
  const TrainResult result = engine.fit();
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.steps_done, 3);
}

TEST(Engine, DivergenceIsANumericErrorThatNamesTheStep) {
  TrainConfig config = tiny_config(2, 1);
  config.optimizer = OptimizerKind::kSgd;
  config.lr = 1e30;
  config.lr_decay = LrDecay::kConstant;
  config.clip_grad = 0;
  config.train_iters = 20;
  RuntimeEngine engine = tiny_engine(config);
  try {
    engine.fit();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kNumeric) << error.what();
    EXPECT_THAT(error.what(), testing::HasSubstr("step "));
    EXPECT_THAT(error.what(), testing::HasSubstr("--lr"));
  }
}

TEST(Engine, TracesOnlyTheStepsAskedForOnEveryRank) {
  TrainConfig config = tiny_config(4, 2);
  config.trace_step_start = 1;
  config.trace_step_end = 3;
  RuntimeEngine engine = tiny_engine(config);
  const TrainResult result = engine.fit();
  ASSERT_EQ(result.traces.size(), 4u);
  for (int rank = 0; rank < 4; ++rank) {
    const RankTrace& trace = result.traces[static_cast<size_t>(rank)];
    EXPECT_EQ(trace.global_rank, rank);
    std::set<int> steps;
    int collectives = 0;
    for (const Event& event : trace.events) {
      steps.insert(event.step);
      collectives += event.kind == EventKind::kCollective;
      EXPECT_LE(event.virtual_begin_ns, event.virtual_end_ns);
    }
    EXPECT_EQ(steps, (std::set<int>{1, 2}));
    EXPECT_GT(collectives, 0);
  }
}

// What a trace holds changes no time: autograd starts reductions at the same moments under hooks. With norms behind,
// the first layer's input has two readers, and its bucket's last gradient is made before theirs are added up.
TEST(Engine, ATracedStepTakesTheTimeOfOneThatIsNot) {
  TrainConfig config;  // gpt_tiny
  config.parallel = {.world = 2, .tp = 1};
  config.model.num_layers = 1;
  config.model.norm_placement = NormPlacement::kBehind;
  config.train_iters = 2;
  config.mock_data = true;
  config.eval_interval = 0;
  config.sample_tokens = 0;
  std::set<double> step_ms;
  for (const char* level : {"step", "action", "module", "kernel"}) {
    config.trace_level = level;
    RuntimeEngine engine = tiny_engine(config);
    const auto hook = std::make_shared<RecordingHook>();
    engine.add_hook(hook);
    engine.fit();
    step_ms.insert(hook->steps.back().virtual_step_ms);
  }
  EXPECT_THAT(step_ms, SizeIs(1));
}

// Every rank of a tensor-parallel group must train on the same tokens, and different dp ranks on different ones.
TEST(Engine, ModelParallelPeersSeeTheSameTokens) {
  const RunPlan plan = resolve(tiny_config(8, 2));
  std::shared_ptr<World> world = make_thread_world({.size = 8});
  const RuntimeComponents parts = default_components(world, plan);
  std::vector<uint64_t> hash(8);
  world->run([&](Endpoint& endpoint) {
    RankContext ctx(endpoint, plan.mesh, {.profile = &plan.profile});
    const auto data = parts.data_provider->build_data(ctx, plan);
    uint64_t h = 0;
    for (int64_t step = 0; step < 3; ++step) {
      const Batch batch = data->train_batch(step, 0);
      h = hash_bytes(batch.tokens_BS.const_data_ptr(), batch.tokens_BS.nbytes(), h);
    }
    hash[static_cast<size_t>(endpoint.global_rank())] = h;
  });
  const std::set<uint64_t> distinct(hash.begin(), hash.end());
  EXPECT_EQ(distinct.size(), 4u);
  for (size_t r = 0; r < 8; r += 2) EXPECT_EQ(hash[r], hash[r + 1]);
}

}  // namespace
}  // namespace ranklab
