// What a run is compared with: the batches of its own steps, gradients of single branches, the same loss.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/exhausted.h"
#include "core/config/one_rank.h"
#include "core/parity/microscope.h"
#include "core/parity/record_run.h"
#include "core/runtime/wrapped_data.h"
#include "tests/parity/world_of.h"
#include "tests/support/small_config.h"

namespace ranklab {
namespace {

TrainConfig small_fp32() {
  TrainConfig c = small_config();
  c.params_dtype = "fp32";
  return c;
}

// A step's batches are loaded before it begins: each is kept as that step's, in a step of any size.
TEST(ParityReference, HoldsEveryStepsBatchesToTheReference) {
  TrainConfig config = small_fp32();
  config.parallel = {.world = 2, .dp = 2};
  config.model.num_layers = 1;
  config.train_iters = 3;
  config.global_batch_size = 8;
  config.micro_batch_size = 2;
  config.rampup_batch_size = "4 4 4";
  const ParityRecord record = record_run(config, world_of, {.steps = 2});
  for (int64_t step = 0; step < 2; ++step) {
    const auto found = record.tensors.find({step, ParityPhase::kBatch, "batch", "tokens"});
    ASSERT_NE(found, record.tensors.end());
    EXPECT_EQ(found->second.front().slice.shape[0], step == 0 ? 4 : 8);
    EXPECT_EQ(found->second.size(), step == 0 ? 2U : 4U) << "a piece for each microbatch";
  }
  EXPECT_FALSE(record.tensors.contains({2, ParityPhase::kBatch, "batch", "tokens"}));
  EXPECT_FALSE(Microscope(on_one_rank(config), world_of, {.steps = 2}).examine(config).differs());
}

// A branch's gradient is its own if another branch reads the same input, and if it is recomputed on a copy of it.
TEST(ParityReference, BranchesThatShareAnInputHaveGradientsOfTheirOwn) {
  for (const ResidualForm form : {ResidualForm::kParallel, ResidualForm::kParallelOneNorm}) {
    TrainConfig config = small_fp32();
    config.parallel = {.world = 1};
    config.model.residual_form = form;
    config.recompute_granularity = "selective";
    config.recompute_modules = {.mlp = true};
    const ParityResult result = Microscope(on_one_rank(config), world_of, {.steps = 1}).examine(config);
    EXPECT_FALSE(result.differs()) << result.wrong()->key.text();
  }
}

// What modules of multi-token prediction make is the same, whichever stage makes their losses of it.
TEST(ParityReference, PredictionModulesOfAStageOfTheirOwnAreComparedWhole) {
  TrainConfig config = small_fp32();
  config.model.mtp_num_layers = 2;
  config.parallel = {.world = 3, .pp = 3};
  config.pipeline_layout = "Ett|ttmm|L";
  const ParityResult result = Microscope(on_one_rank(config), world_of, {.steps = 1}).examine(config);
  EXPECT_FALSE(result.differs()) << result.wrong()->key.text();
  // The head of one rank has the final norm, too, and with it the gradient of another input.
  for (const TensorKey& key : result.comparison.not_compared) EXPECT_EQ(key.text(), "head grad_input");
  for (const char* tensor : {"mtp.1 output", "mtp.1 grad_output", "mtp.1 grad_input", "head.predict grad_input"})
    EXPECT_TRUE(std::ranges::any_of(result.comparison.verdicts, [&](const TensorVerdict& one) {
      return one.key.text() == tensor;
    })) << tensor;
}

// No rank has a whole weight as a step begins.
TEST(ParityReference, ShardsOfWeightsAreHeldToTheReferencesWeights) {
  TrainConfig config = small_fp32();
  config.model.num_layers = 1;
  config.parallel = {.world = 4, .tp = 2, .dp = 2};
  config.zero_stage = 3;
  const Microscope scope(on_one_rank(config), world_of, {.steps = 2, .narrow = false});
  const ParityResult right = scope.examine(config);
  EXPECT_FALSE(right.differs()) << right.wrong()->key.text();
  for (const TensorKey& key : right.comparison.not_compared) ADD_FAILURE() << key.text();
  config.inject = "init-per-shard";
  const ParityResult wrong = scope.examine(config);
  ASSERT_TRUE(wrong.differs());
  EXPECT_EQ(wrong.wrong()->key.phase, ParityPhase::kWeights) << wrong.wrong()->key.text();
}

// Experts are balanced over what all data-parallel ranks have at a time: a loss that one rank has only of a microbatch
// that it takes whole.
TEST(ParityReference, TheReferenceTrainsByTheSameBalancingLoss) {
  TrainConfig config = small_fp32();
  config.parallel = {.world = 2, .dp = 2};
  config.model.num_layers = 2;
  config.model.moe = {.num_experts = 4, .balancing = LoadBalancing::kGlobalAuxLoss, .aux_loss_coeff = 0.3};
  config.num_microbatches = 1;
  EXPECT_EQ(reference_layout(config).parallel.world, 1);
  EXPECT_FALSE(Microscope(reference_layout(config), world_of, {.steps = 1}).examine(config).differs());
  EXPECT_TRUE(Microscope(on_one_rank(config), world_of, {.steps = 1, .narrow = false}).examine(config).differs());
  config.bf16 = true;
  EXPECT_EQ(reference_layout(config).parallel.world, 2);
  config.bf16 = false;
  config.num_microbatches = 2;
  config.parallel = {.world = 4, .tp = 2, .dp = 2};
  EXPECT_EQ(reference_layout(config).parallel.world, 2);
  EXPECT_FALSE(Microscope(reference_layout(config), world_of, {.steps = 1}).examine(config).differs());
}

// How many runs it takes to examine a layout against one rank of `right`, and whether it differs.
std::pair<int, bool> examined(const TrainConfig& right, const TrainConfig& config) {
  int runs = 0;
  const auto count = [&runs](const std::string&) { ++runs; };
  const Microscope scope(on_one_rank(right), world_of, {.steps = 2, .narrow = false, .progress = count});
  const bool differs = scope.examine(config).differs();
  return {runs, differs};
}

// One weight whose gradient nearly vanishes may cause all of the distance after an update: a value about which the
// perturbed runs say little.
TEST(ParityReference, ADifferenceThatCouldBeRoundingIsHeldToMoreRuns) {
  TrainConfig config = small_fp32();
  config.parallel = {.world = 2, .tp = 2};
  config.model.num_layers = 1;
  config.lr_decay_iters = 3;
  EXPECT_EQ(examined(config, config), std::pair(5, false));
  TrainConfig wrong = config;
  wrong.inject = "init-per-shard";
  EXPECT_EQ(examined(config, wrong), std::pair(5, true)) << "far beyond rounding, before any update";
  TrainConfig later = config;
  later.lr_decay_iters = 4;  // the first step has the same rate
  EXPECT_EQ(examined(config, later), std::pair(10, true));
}

// A parameter of 16 elements after a step: all ones, but for one element.
ParityRecord after_a_step(double moment, double weight) {
  ParityRecord record;
  record.type = at::kFloat;
  for (const auto& [kind, value] : {std::pair{"exp_avg", moment}, {"updated weight", weight}}) {
    at::Tensor values = at::ones({16}, at::kFloat);
    values[3] = value;
    record.tensors[{0, ParityPhase::kUpdate, "w", kind}] = {{0, 0, whole_slice({16}), values}};
  }
  return record;
}

// In low precision a moment may have the opposite sign by rounding, and then its weight moves the other way.
TEST(ParityReference, AWeightIsNotHeldToWhatRoundingDecided) {
  constexpr double kHalf = 0.5 * 0x1p23;  // of the root mean square, in epsilons
  const ParityReference reference(after_a_step(0.4, 1), {}, kFactor, kHalf);
  const auto wrong = [&](double moment, double weight) {
    const ParityComparison result = compare(after_a_step(moment, weight), reference);
    return result.first_wrong() == nullptr ? "" : result.first_wrong()->key.kind;
  };
  EXPECT_EQ(wrong(0.4, 1), "");
  EXPECT_EQ(wrong(-0.05, -1), "") << "within half";
  EXPECT_EQ(wrong(-0.4, -2), "updated weight") << "its tensor is near enough, the negated moment is not";
  EXPECT_EQ(wrong(0.5, -2), "updated weight") << "the moment says which way";
  EXPECT_EQ(wrong(-2, -1), "exp_avg") << "a moment that is itself too far";
  const ParityReference smaller(after_a_step(0.2, 1), {}, kFactor, kHalf);
  EXPECT_EQ(compare(after_a_step(0.3, -1), smaller).first_wrong(), nullptr) << "smaller than what is allowed";
}

// A step of AdamW in bf16 from zero, of moments from -1 to 1 and with `noise` of their size.
ParityRecord updated_by(double lr, double noise) {
  ParityRecord record;
  record.type = at::kBFloat16;
  const at::Tensor moment = at::linspace(-1, 1, 1000, at::kFloat);
  const at::Tensor moved = moment + noise * at::cos(at::arange(1000, at::kFloat));
  record.tensors[{0, ParityPhase::kUpdate, "w", "exp_avg"}] = {{0, 0, whole_slice({1000}), moved}};
  record.tensors[{0, ParityPhase::kUpdate, "w", "updated weight"}] = {{0, 0, whole_slice({1000}), -lr * moment.sign()}};
  return record;
}

// Moments that rounding may turn over leave most weights compared: the update is held to them.
TEST(ParityReference, AWrongUpdateOfRightMomentsIsFoundInFewBits) {
  constexpr double kLeast = 0.5;  // epsilons: 0.4 % of the weights
  const ParityReference reference(updated_by(1e-3, 0), {updated_by(1e-3, 0.9)}, kFactor, kLeast);
  ASSERT_GT(reference.tolerance(reference.keys().front()) * 0x1p-7, 4) << "of the moment: all elements are below it";
  EXPECT_EQ(compare(updated_by(1e-3, 0), reference).first_wrong(), nullptr);
  const ParityComparison result = compare(updated_by(1.01e-3, 0), reference);
  ASSERT_NE(result.first_wrong(), nullptr);
  EXPECT_EQ(result.first_wrong()->key.kind, "updated weight");
  EXPECT_NEAR(result.first_wrong()->left_out, 0.14, 0.02);  // a quarter of the root mean square of -1..1
}

TEST(ParityReference, TheSameArithmeticIsComparedInAllElements) {
  const auto nearly_none = [] {
    ParityRecord record = after_a_step(1, 1);
    record.tensors.begin()->second.front().value.slice(0, 0, 10).fill_(0.01);
    return record;
  };
  const ParityReference reference(nearly_none(), {});
  const ParityComparison result = compare(nearly_none(), reference);
  EXPECT_EQ(result.verdicts.back().left_out, 10. / 16);
  EXPECT_EQ(compare(nearly_none(), reference, true).verdicts.back().left_out, 0);
  ParityRecord other = nearly_none();
  other.tensors.rbegin()->second.front().value[0] = -1;
  EXPECT_EQ(compare(other, reference).first_wrong(), nullptr);
  EXPECT_NE(compare(other, reference, true).first_wrong(), nullptr) << "the same arithmetic has the same bits";
}

// On one rank, too, a token's outputs are added up in an order of the dispatcher's own.
TEST(ParityReference, AnotherDispatcherIsNotTheSameArithmetic) {
  TrainConfig config = small_fp32();
  config.model.moe = {.num_experts = 8, .topk = 3, .ffn_hidden_size = 16};
  const auto recorded = [&](uint64_t seed) { return record_run(config, world_of, {.steps = 1, .perturb = seed}); };
  const ParityReference reference(recorded(0), {recorded(1), recorded(2)});
  config.moe_dispatcher = "rdep";
  EXPECT_EQ(compare_with_reference(recorded(0), reference).wrong(), nullptr);
}

TEST(ParityReference, OneMorePerturbedRunCanOnlyAllowMore) {
  TrainConfig config = small_fp32();
  config.model.num_layers = 1;
  const auto perturbed = [&](uint64_t seed) { return record_run(config, world_of, {.steps = 2, .perturb = seed}); };
  ParityReference reference(perturbed(0), {perturbed(1)}, kFactor, 0);
  std::map<TensorKey, double> before;
  for (const TensorKey& key : reference.keys()) before[key] = reference.tolerance(key);
  const ParityRecord more = perturbed(2);
  reference.add(more);
  int grew = 0;
  for (const auto& [key, allowed] : before) {
    double farthest = 0;
    for (const TensorPiece& piece : more.tensors.at(key))
      farthest = std::max(farthest, reference.distance(key, piece, reference.slack(more, key))->eps);
    EXPECT_EQ(reference.tolerance(key), std::max(allowed, kFactor * farthest)) << key.text();
    grew += reference.tolerance(key) > allowed;
  }
  EXPECT_GT(grew, 5);
}

// Data for which a machine has memory on one rank only.
std::unique_ptr<RankData> on_one_rank_only(std::unique_ptr<RankData> data, const RankContext& ctx, const RunPlan&) {
  if (ctx.mesh().world_size() > 1) throw memory_exhausted();
  return data;
}

// A run that this machine cannot carry says nothing about its layout.
TEST(ParityReference, MemoryThatRunsOutIsNotADifference) {
  const auto scarce = [](std::shared_ptr<World> world, const RunPlan& plan) {
    RuntimeComponents parts = default_components(std::move(world), plan);
    parts.data_provider = wrap_data(parts.data_provider, on_one_rank_only);
    return parts;
  };
  TrainConfig config = small_fp32();
  config.parallel = {.world = 2, .tp = 2};
  try {
    Microscope(on_one_rank(config), world_of, {.components = scarce}).examine(config);
    ADD_FAILURE() << "examined";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment) << error.what();
  }
}

}  // namespace
}  // namespace ranklab
