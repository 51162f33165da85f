// Every sentinel with bounds fires in a parallel run with a fault made for it, and none fires in a clean one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <ostream>

#include "core/base/text.h"
#include "core/parity/watch.h"
#include "core/runtime/wrapped_optimizer.h"
#include "core/sim/aten.h"
#include "tests/sentinels/sentinel_run.h"
#include "tests/support/model_variants.h"
#include "tests/support/uneven_batches.h"

namespace ranklab {
namespace {

struct Fault {
  const char* sentinel;
  const char* what;
  std::function<void(TrainConfig&)> config = {};
  SentinelRunOptions options = {};
};

void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.what; }

// Before step 3 the weights of all ranks whose name has this in it are multiplied.
std::function<void(StepContext&)> scaled(std::string part, double factor, int64_t step = 3) {
  return [part = std::move(part), factor, step](StepContext& context) {
    if (context.step != step) return;
    const at::NoGradGuard no_grad;
    for (Parameter* parameter : context.model.registry().parameters())
      if (parameter->name.find(part) != std::string::npos) parameter->data.mul_(factor);
  };
}

// On one rank alone.
std::function<void(StepContext&)> on_rank(int global_rank, std::function<void(StepContext&)> fault) {
  return [global_rank, fault = std::move(fault)](StepContext& context) {
    if (context.ctx.global_rank() == global_rank) fault(context);
  };
}

void with_lr(TrainConfig& c, double lr) {
  c.lr = lr;
  c.min_lr = std::min(c.min_lr, lr);
}

// An optimizer that uses another learning rate than the schedule's.
std::shared_ptr<OptimizerRuntime> with_other_rate(std::shared_ptr<OptimizerRuntime> right) {
  class Off final : public WrappedOptimizer {
   public:
    using WrappedOptimizer::WrappedOptimizer;
    double finish_step(double lr) override { return inner().finish_step(lr * 1.01); }
  };
  return wrap_optimizers(std::move(right),
                         [](const OptimizerRuntime& inner, CausalLm& model, RankContext& ctx, const RunPlan& plan) {
                           return std::make_unique<Off>(inner.initialize(model, ctx, plan));
                         });
}

// Random tokens of (step, sample, seed).
std::shared_ptr<DataProvider> tokens_of(std::function<int64_t(const RankContext&, int64_t step)> seed,
                                        int64_t slow_ns = 0) {
  return provide_data("tokens", [=](const RankContext& ctx, const RunPlan& plan, int64_t step, int64_t microbatch) {
    rank_wall_ns += slow_ns;
    const int64_t first = (ctx.coordinate(Axis::kDp) * plan.microbatches_of(step) + microbatch) * plan.micro_batch_size;
    Batch batch = uneven_batch(ctx, plan, seed(ctx, step), first, plan.micro_batch_size);
    batch.targets_BS = batch.targets_BS.clamp_min(0);  // all count
    batch.step = step;
    return batch;
  });
}
void usual_experts(TrainConfig& c) { variant_named("deepseek_experts").change(c.model); }
// A router without a preference takes the first experts for every token.
void lost_router(TrainConfig& c) {
  usual_experts(c);
  c.parallel.ep = 2;
}

std::vector<Fault> faults() {
  std::vector<Fault> all;
  const auto add = [&](const char* sentinel, const char* what, std::function<void(TrainConfig&)> config,
                       SentinelRunOptions options = {}) {
    all.push_back({sentinel, what, std::move(config), std::move(options)});
  };
  const auto before = [&](const char* sentinel, const char* what, std::function<void(StepContext&)> fault) {
    add(sentinel, what, {}, {.before_step = std::move(fault)});
  };
  const auto data = [&](const char* sentinel, const char* what, std::shared_ptr<DataProvider> provider) {
    add(sentinel, what, {}, {.parts = [provider](RuntimeComponents& parts) { parts.data_provider = provider; }});
  };
  before("loss_spike", "the head's weights explode", scaled("head.weight", 300));
  before("grad_norm", "so do gradients behind them", scaled("head.weight", 1000));
  before("probe_kl", "the prediction turns over", scaled("head.weight", 300));
  add("clip_coef", "a tiny limit", [](TrainConfig& c) { c.clip_grad = 1e-4; });
  add("lr_schedule", "an optimizer with a rate of its own", {},
      {.parts = [](RuntimeComponents& parts) { parts.optimizer_runtime = with_other_rate(parts.optimizer_runtime); }});
  data("ignored_tokens", "half of the targets do not count", uneven_batches());
  add("dead_experts", "a router without a preference", lost_router, {.before_step = scaled("router.weight", 0, 0)});
  add("collapsed_experts", "a router without a preference", lost_router,
      {.before_step = scaled("router.weight", 0, 0)});
  add("dropped_tokens", "all tokens want the same experts, which have room for few",
      [](TrainConfig& c) {
        lost_router(c);
        c.model.moe.capacity_factor = 1;
      },
      {.before_step = scaled("router.weight", 0, 0)});
  data("data_wait", "a loader that takes as long as the step",
       tokens_of([](const RankContext&, int64_t step) { return step; }, 500'000'000));
  before("throughput_drop", "a slow step of all ranks", [](StepContext& context) {
    if (context.step == 5) context.ctx.clock().advance(1'000'000'000);
  });
  before("straggler", "a slow rank",
         on_rank(5, [](StepContext& context) { context.ctx.clock().advance(1'000'000'000); }));
  add("reserved", "a device that is too small", {},
      {.plan = [](RunPlan& plan) { plan.profile.memory_bytes = 1 << 17; }});
  add("memory_growth", "tensors that stay", [](TrainConfig& c) { c.train_iters = 14; },
      {.before_step = [](StepContext& context) {
        static thread_local std::vector<at::Tensor> leak;
        if (context.ctx.global_rank() == 3) leak.push_back(at::zeros({40'000}, at::kDouble));
      }});
  add("update_ratio", "a learning rate that is too high", [](TrainConfig& c) { with_lr(c, 100), c.train_iters = 1; });
  add("update_ratio_p95", "a learning rate that is too high",
      [](TrainConfig& c) { with_lr(c, 100), c.train_iters = 1; });
  add("update_ratio_max", "a learning rate that is too high",
      [](TrainConfig& c) { with_lr(c, 100), c.train_iters = 1; });
  add("update_ratio_p50", "a learning rate that is too low", [](TrainConfig& c) { with_lr(c, 1e-9); });
  add("no_update", "a learning rate below the weights' rounding", [](TrainConfig& c) { with_lr(c, 1e-40); });
  before("grad_depth_ratio", "a first layer that sees nothing", [](StepContext& context) {
    scaled("layers.0.attention_norm", 0, 2)(context);
    scaled("layers.0.mlp_norm", 0, 2)(context);
  });
  before("update_depth_ratio", "a first layer that sees nothing", [](StepContext& context) {
    scaled("layers.0.attention_norm", 0, 2)(context);
    scaled("layers.0.mlp_norm", 0, 2)(context);
  });
  before("weight_spread", "a layer whose matrices exploded", scaled("layers.1.mlp", 1e5));
  before("optimizer_state", "an infinity in one rank's moments", on_rank(6, [](StepContext& context) {
           if (context.step != 2) return;
           for (OwnedState& state : context.optimizer.owned_state())
             for (auto& [name, moment] : state.moments)
               if (name == "exp_avg_sq") moment[0] = std::numeric_limits<double>::infinity();
         }));
  before("norm_rms", "norms that grew", scaled("norm.weight", 5));
  before("activation_max", "norms that exploded", scaled("norm.weight", 100));
  before("residual_growth", "an embedding that grew", scaled("embedding.weight", 100));
  add("residual_outliers", "one token in 256 that sticks out", [](TrainConfig& c) { c.global_batch_size = 32; },
      {.parts =
           [](RuntimeComponents& parts) {
             parts.data_provider = tokens_of([](const RankContext&, int64_t step) { return step; });
           },
       .before_step =
           [](StepContext& context) {
             const Parameter* embedding = context.model.registry().find("embedding.weight");
             if (context.step != 3 || embedding == nullptr || context.ctx.coordinate(Axis::kTp) != 0) return;
             const at::NoGradGuard no_grad;
             embedding->data[5].mul_(1e4);
           }});
  before("attention_logit", "queries and keys that exploded", scaled("qkv.weight", 100));
  before("attention_collapse", "queries and keys that exploded", scaled("qkv.weight", 100));
  before("replica_drift", "a weight of one replica changes", on_rank(5, [](StepContext& context) {
           if (context.step != 2) return;
           const at::NoGradGuard no_grad;
           context.model.registry().parameters()[0]->data.view({-1})[0].add_(1e-9);
         }));
  data("data_repeated", "the same batch in each step", tokens_of([](const RankContext&, int64_t) { return 0; }));
  data("data_mismatch", "tp peers that load different tokens",
       tokens_of([](const RankContext& ctx, int64_t step) { return step * 10 + ctx.coordinate(Axis::kTp); }));
  for (const auto& [sentinel, bug] :
       {std::pair{"parity_copies", "last-microbatch-local"}, std::pair{"parity_layer", "dropout-mask-repeated"}})
    all.push_back({.sentinel = sentinel,
                   .what = bug,
                   .config =
                       [bug = bug](TrainConfig& c) {
                         c.inject = bug;
                         c.sentinels.parity_interval = 1;
                         c.model.dropout = 0.1;
                       },
                   .options = {.parts = [](RuntimeComponents& parts) { parts = with_parity_watch(parts); }}});
  return all;
}

class SentinelFaults : public testing::TestWithParam<Fault> {};

TEST_P(SentinelFaults, FireTheirSentinel) {
  TrainConfig config = watched_config();
  if (GetParam().config) GetParam().config(config);
  const SentinelRun run = run_sentinels(config, GetParam().options);
  EXPECT_THAT(run.fired(), testing::Contains(GetParam().sentinel)) << GetParam().what;
}

INSTANTIATE_TEST_SUITE_P(Of, SentinelFaults, testing::ValuesIn(faults()),
                         [](const auto& one) { return std::string(one.param.sentinel); });

// Each expert is on two ranks, which split its weights and both have its second bias.
TEST(ReplicaDrift, IsSeenInABiasOfAnExpertOnRanksThatSplitIt) {
  TrainConfig config = watched_config();
  usual_experts(config);
  config.model.add_bias = true;
  config.parallel.ep = 2;
  config.parallel.etp = 2;
  EXPECT_THAT(run_sentinels(config).fired(), testing::Not(testing::Contains("replica_drift")));
  const SentinelRun run = run_sentinels(config, {.before_step = on_rank(5, [](StepContext& context) {
                                                   if (context.step != 2) return;
                                                   const at::NoGradGuard no_grad;
                                                   for (Parameter* parameter : context.model.registry().parameters())
                                                     if (parameter->is_expert && parameter->partition.replicated())
                                                       parameter->data.view({-1})[0] += 1e-9;
                                                 })});
  EXPECT_THAT(run.fired(), testing::Contains("replica_drift"));
}

TEST(SentinelFaultTable, HasEverySentinelWithBounds) {
  std::vector<std::string> with_bounds, with_fault;
  for (const SentinelRow& row : sentinel_rows())
    if (!row.warn.open() || !row.stop.open()) with_bounds.emplace_back(row.name);
  for (const Fault& fault : faults()) with_fault.emplace_back(fault.sentinel);
  EXPECT_THAT(with_fault, testing::UnorderedElementsAreArray(with_bounds));
}

// A step of one microbatch keeps no sum of gradients; the first larger one does.
TEST(CleanRuns, ALargerBatchIsNoLeak) {
  TrainConfig config = watched_config();
  config.parallel = {.world = 1};
  config.global_batch_size = 8;
  config.micro_batch_size = 2;
  config.num_microbatches = 0;
  config.rampup_batch_size = "2 6 11";
  config.train_iters = 14;
  const SentinelRun run = run_sentinels(config);
  EXPECT_EQ(run.steps.size(), 14u);
  EXPECT_THAT(run.fired(), testing::Not(testing::Contains("memory_growth")));
}

// On random tokens: generated sentences are so short here that they repeat.
TEST(CleanRuns, FireNoSentinel) {
  for (const bool experts : {false, true}) {
    for (const int zero : {0, 3}) {
      SCOPED_TRACE(std::to_string(experts) + " " + std::to_string(zero));
      TrainConfig config = watched_config();
      config.train_iters = 12;
      config.zero_stage = zero;
      config.clip_grad = 100;
      if (experts) {
        usual_experts(config);
        config.parallel.ep = 2;
      }
      const SentinelRun run = run_sentinels(config, {.parts = [](RuntimeComponents& parts) {
                                              parts.data_provider =
                                                  tokens_of([](const RankContext&, int64_t step) { return step; });
                                            }});
      EXPECT_THAT(run.fired(), testing::IsEmpty());
      EXPECT_EQ(run.steps.size(), 12u);
      EXPECT_TRUE(run.result.stopped.empty());
    }
  }
}

// Batches of 4, 6 and 8 sequences are not faults, and each is counted with its size.
TEST(CleanRuns, GrowingBatchesFireNoSentinel) {
  TrainConfig config = watched_config();
  config.train_iters = 12;
  config.clip_grad = 100;
  config.rampup_batch_size = "4 2 40";
  const SentinelRun run = run_sentinels(config, {.parts = [](RuntimeComponents& parts) {
                                          parts.data_provider =
                                              tokens_of([](const RankContext&, int64_t step) { return step; });
                                        }});
  EXPECT_THAT(run.fired(), testing::IsEmpty());
  int64_t sequences = 0;
  for (size_t step = 0; step < run.steps.size(); ++step) {
    const int64_t now = step < 5 ? 4 : step < 9 ? 6 : 8;  // 20 sequences, then 24
    sequences += now;
    const auto value = [&](const char* tag) { return *run.steps[step]->find(tag); };
    EXPECT_EQ(value("Tokens/seen"), static_cast<double>(sequences * config.model.seq_length)) << step;
    EXPECT_EQ(value("Data/tokens_per_update"), static_cast<double>(now * config.model.seq_length)) << step;
    EXPECT_EQ(value("Data/ignore_frac"), 0) << step;
    EXPECT_EQ(value("Throughput/samples_per_second"), static_cast<double>(now)) << step;  // a second a step
  }
}

// The start of training, where everything grows, stops no run: from untrained weights to sentences, at the usual
// intervals.
TEST(CleanRuns, LearningIsNotStopped) {
  TrainConfig config = watched_config();
  config.params_dtype = "fp32";
  config.model.init_std = 0.02;
  config.lr = 1e-2;
  config.train_iters = 60;
  config.clip_grad = 1;
  config.sentinels = {};
  config.sentinels.mode = SentinelMode::kStandard;
  const SentinelRun run = run_sentinels(config);
  EXPECT_TRUE(run.result.stopped.empty()) << run.result.stopped;
  EXPECT_LT(run.result.last_loss, 3);
}

TEST(SentinelsOff, ChangeNothingAndOnTheyChangeNoBit) {
  TrainConfig config = watched_config();
  config.sentinels.probe_interval = 100;  // after step 0 alone
  const SentinelRun on = run_sentinels(config);
  config.sentinels = {};
  const SentinelRun off = run_sentinels(config);
  ASSERT_EQ(on.metrics.size(), off.metrics.size());
  for (size_t i = 0; i < on.metrics.size(); ++i) {
    EXPECT_EQ(on.metrics[i].loss, off.metrics[i].loss);
    EXPECT_EQ(on.metrics[i].grad_norm, off.metrics[i].grad_norm);
    EXPECT_EQ(off.metrics[i].sentinels, nullptr);
  }
  EXPECT_EQ(on.metrics[0].virtual_step_ms, off.metrics[0].virtual_step_ms);
  // The timeline has the same collectives, of the same times.
  for (size_t rank = 0; rank < on.result.traces.size(); ++rank) {
    const auto calls = [](const RankTrace& trace) {
      return std::ranges::count(trace.events, EventKind::kCollective, &Event::kind);
    };
    EXPECT_EQ(calls(on.result.traces[rank]), calls(off.result.traces[rank]));
  }
}

// Gathers of updated parameters go on during the next forward, except in steps after which a sentinel reads them all.
TEST(OverlappedGathers, EndEarlyOnlyWhereSentinelsReadWhatIsGathered) {
  TrainConfig config = watched_config();
  config.parallel = {.world = 2};
  config.zero_stage = 1;
  config.overlap_param_gather = true;
  const auto times = [&](const SentinelSettings& sentinels) {
    config.sentinels = sentinels;
    std::vector<double> ms;
    for (const StepMetrics& step : run_sentinels(config).metrics) ms.push_back(step.virtual_step_ms);
    return ms;
  };
  const std::vector<double> alone = times({});
  EXPECT_EQ(times({.mode = SentinelMode::kStandard, .rules = {}, .probe_interval = 100, .drift_interval = 100})[3],
            alone[3]);
  const std::vector<double> drift =
      times({.mode = SentinelMode::kStandard, .rules = {}, .probe_interval = 100, .drift_interval = 3});
  EXPECT_GT(drift[3], alone[3]) << "after which replicas are compared";
  EXPECT_EQ(drift[5], alone[5]);
}

}  // namespace
}  // namespace ranklab
