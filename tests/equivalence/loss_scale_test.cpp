// The loss scale in runs: an overflow on one rank leaves out the update on all, nothing of it changes, the scale goes
// its way exactly; and where nothing overflows a scale of a power of two changes no bit.
#include <gmock/gmock.h>

#include <limits>
#include <set>

#include "core/parallel/data/bucket_shard.h"
#include "core/runtime/wrapped_optimizer.h"
#include "core/sim/aten.h"
#include "tests/equivalence/precision_run.h"
#include "tests/runtime/tiny_run.h"

namespace ranklab {
namespace {

using ::testing::ElementsAre;

TEST(LossScale, OfAPowerOfTwoChangesNoBitInFp32) {
  for (const auto& [world, tp, pp, stage] : {std::tuple{1, 1, 1, 0}, {4, 2, 1, 0}, {8, 2, 2, 1}, {4, 1, 1, 3}}) {
    TrainConfig config = small_run(world, tp);
    config.parallel.pp = pp;
    config.zero_stage = stage;
    config.train_iters = 10;
    if (stage == 3) {  // losses of the experts' own are multiplied, too
      config.parallel.ep = 2;
      config.model.moe = {.num_experts = 4,
                          .topk = 2,
                          .ffn_hidden_size = 24,
                          .first_dense_layers = 1,
                          .balancing = LoadBalancing::kAuxLoss,
                          .aux_loss_coeff = 0.3,
                          .z_loss_coeff = 0.1};
      TrainConfig alone = config;
      alone.model.moe.balancing = LoadBalancing::kNone;
      alone.model.moe.aux_loss_coeff = alone.model.moe.z_loss_coeff = 0;
      EXPECT_NE(record_training(alone).norms(), record_training(config).norms());
    }
    const TrainingRecord without = record_training(config);
    for (const double scale : {1.0, 4096.0, 1.0 / 32}) {
      config.precision.loss_scale = scale;
      const TrainingRecord scaled = record_training(config);
      SCOPED_TRACE("scale " + std::to_string(scale) + ", world " + std::to_string(world));
      expect_same_training(scaled, without, kSameBits);
      EXPECT_EQ(scaled.steps[0].loss_scale, scale);
    }
  }
}

// Gradients of one parameter on one rank become infinite in some steps.
struct Fault {
  int rank = 0;
  std::string parameter;
  std::set<int64_t> steps;
};

// All that an update changes, of one rank.
using State = std::vector<at::Tensor>;

State state_of(RankOptimizer& optimizer) {
  State state;
  for (const OwnedState& owned : optimizer.owned_state()) {
    if (!is_freed(owned.parameter->data)) state.push_back(owned.parameter->data.detach().clone());
    state.push_back(owned.weight.clone());
    for (const auto& [name, moment] : owned.moments) state.push_back(moment.clone());
  }
  return state;
}

bool same(const State& a, const State& b) {
  return std::ranges::equal(a, b, [](const at::Tensor& x, const at::Tensor& y) { return at::equal(x, y); });
}

struct Seen {
  std::mutex mutex;
  std::map<int, std::vector<bool>> changed;     // by rank, of each step: whether anything did
  std::map<int, std::vector<int64_t>> updates;  // done after it
};

class WatchedOptimizer : public WrappedOptimizer {
 public:
  WatchedOptimizer(std::unique_ptr<RankOptimizer> inner, CausalLm& model, int rank, const Fault& fault, Seen& seen)
      : WrappedOptimizer(std::move(inner)), rank_(rank), seen_(seen) {
    const Parameter* victim = model.registry().find(fault.parameter);
    if (rank != fault.rank) return;
    if (victim == nullptr) throw std::out_of_range(fault.parameter);
    victim->data.register_hook([this, fault](const at::Tensor& grad) {
      return fault.steps.contains(step_) ? at::full_like(grad, std::numeric_limits<float>::infinity()) : grad;
    });
  }
  double finish_step(double lr) override {
    const State before = state_of(inner());
    const double norm = inner().finish_step(lr);
    const std::lock_guard lock(seen_.mutex);
    seen_.changed[rank_].push_back(!same(before, state_of(inner())));
    seen_.updates[rank_].push_back(updates());
    ++step_;
    return norm;
  }

 private:
  int rank_;
  Seen& seen_;
  int64_t step_ = 0;
};

struct OverflowCase {
  const char* name;
  ParallelDims dims;
  int zero_stage;
  Fault fault;
};

void PrintTo(const OverflowCase& one, std::ostream* out) { *out << one.name; }

const std::set<int64_t> kOverflows = {1, 2, 5};
const OverflowCase kOverflowCases[] = {
    {"one_rank", {.world = 1}, 0, {0, "layers.0.mlp.down.weight", kOverflows}},
    {"dp", {.world = 4}, 0, {2, "embedding.weight", kOverflows}},
    {"tp_shard", {.world = 2, .tp = 2}, 0, {1, "layers.1.mlp.gate_up.weight", kOverflows}},
    {"last_stage", {.world = 8, .tp = 2, .pp = 2}, 0, {7, "layers.3.attention.qkv.weight", kOverflows}},
    {"expert", {.world = 4, .ep = 2}, 0, {3, "layers.1.mlp.experts.2.down.weight", kOverflows}},
    {"zero1", {.world = 4}, 1, {1, "layers.0.mlp.down.weight", kOverflows}},
    {"zero2_pp2", {.world = 4, .pp = 2}, 2, {3, "final_norm.weight", kOverflows}},
    {"zero3", {.world = 4}, 3, {1, "layers.0.mlp.down.weight", kOverflows}},
};

TrainConfig overflow_config(const OverflowCase& a) {
  TrainConfig c = small_run(a.dims.world, a.dims.tp);
  c.parallel = a.dims;
  c.zero_stage = a.zero_stage;
  c.train_iters = 8;
  c.lr_warmup_iters = 2;
  if (a.dims.ep > 1) c.model.moe = {.num_experts = 4, .topk = 2, .ffn_hidden_size = 24, .first_dense_layers = 1};
  c.precision.fp16 = true;
  c.precision.initial_loss_scale = 1024;
  c.precision.loss_scale_window = 2;
  return c;
}

class Overflow : public testing::TestWithParam<OverflowCase> {};

TEST_P(Overflow, OnOneRankLeavesOutTheUpdateOnAll) {
  const RunPlan plan = resolve(overflow_config(GetParam()));
  Seen seen;
  RuntimeComponents parts = default_components(make_thread_world({.size = plan.mesh.world_size()}), plan);
  parts.optimizer_runtime = wrap_optimizers(
      parts.optimizer_runtime, [&](const OptimizerRuntime& inner, CausalLm& model, RankContext& ctx, const RunPlan& p) {
        return std::make_unique<WatchedOptimizer>(inner.initialize(model, ctx, p), model, ctx.global_rank(),
                                                  GetParam().fault, seen);
      });
  RuntimeEngine engine(parts, plan);
  const auto hook = std::make_shared<RecordingHook>();
  engine.add_hook(hook);
  engine.fit();
  std::vector<double> scales, rates;
  std::vector<int64_t> skipped;
  for (const StepMetrics& step : hook->steps) {
    scales.push_back(step.loss_scale);
    rates.push_back(step.lr);
    skipped.push_back(step.skipped_steps);
    EXPECT_EQ(step.skipped, kOverflows.contains(step.step)) << step.step;
    EXPECT_EQ(std::isinf(step.grad_norm), step.skipped) << step.step;
    EXPECT_TRUE(std::isfinite(step.loss));
  }
  EXPECT_THAT(scales, ElementsAre(1024, 1024, 512, 256, 256, 512, 256, 256));
  EXPECT_THAT(skipped, ElementsAre(0, 1, 2, 2, 2, 3, 3, 3));
  // The schedule waits for the update: its second step is the one that the fourth step of the run does.
  EXPECT_EQ(rates[0], 0);
  EXPECT_EQ(rates[1], rates[2]);
  EXPECT_EQ(rates[2], rates[3]);
  EXPECT_GT(rates[4], rates[3]);
  ASSERT_EQ(seen.changed.size(), static_cast<size_t>(plan.mesh.world_size()));
  for (const auto& [rank, changed] : seen.changed) {
    EXPECT_THAT(changed, ElementsAre(true, false, false, true, true, false, true, true)) << "rank " << rank;
    EXPECT_THAT(seen.updates.at(rank), ElementsAre(1, 1, 1, 2, 3, 3, 4, 5)) << "rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, Overflow, testing::ValuesIn(kOverflowCases),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace ranklab
