// Correct layouts are found to be correct, in every dtype; an injected bug is named: the tensor, the ranks, the reason,
// the axis.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "core/base/error.h"
#include "core/config/exhibit_config.h"
#include "core/nn/split_products.h"
#include "core/parity/every_layout.h"
#include "core/parity/exhibit_parity.h"
#include "core/parity/microscope.h"
#include "core/parity/parity_memory.h"
#include "core/parity/smaller_layouts.h"
#include "core/runtime/wrapped_optimizer.h"
#include "core/sim/aten.h"
#include "examples/bring_your_own.h"
#include "tests/all_cases.h"
#include "tests/parity/world_of.h"
#include "tests/support/small_config.h"

namespace ranklab {
namespace {

using testing::Contains;
using testing::HasSubstr;

TrainConfig small(const std::string& dtype = "fp32") {
  TrainConfig c = small_config();
  c.params_dtype = dtype;
  c.clip_grad = 0.05;
  return c;
}

ParityResult examined(const TrainConfig& config, ParityOptions options = {}) {
  return Microscope(on_one_rank(config), world_of, std::move(options)).examine(config);
}

std::string reasons(const ParityResult& result) {
  std::string all;
  for (const Explanation& one : result.why) all += one.what + "\n";
  return all;
}

// Layouts that together split all that can be split: sequences, heads, stages, shards, experts.
std::vector<TrainConfig> some_layouts() {
  std::vector<TrainConfig> layouts;
  const auto add = [&](TrainConfig c, const ParallelDims& dims, const auto& change) {
    c.parallel = dims;
    change(c);
    layouts.push_back(c);
  };
  add(small(), {.world = 8, .tp = 2, .pp = 2}, [](TrainConfig& c) { c.zero_stage = 2; });
  add(small("fp64"), {.world = 8, .tp = 2, .cp = 2}, [](TrainConfig& c) { c.zero_stage = 3; });
  add(small(), {.world = 4, .pp = 4}, [](TrainConfig& c) { c.pipeline_schedule = "zb-h1"; });
  add(small(), {.world = 4, .tp = 2, .pp = 2}, [](TrainConfig& c) {
    c.bf16 = true;
    c.recompute_granularity = "full";
  });
  add(small(), {.world = 4, .tp = 2, .ep = 4}, [](TrainConfig& c) { c.model.moe.num_experts = 8; });
  add(small(), {.world = 4, .tp = 2, .dp = 2}, [](TrainConfig& c) { c.precision.recipe = "fp8_delayed"; });
  return layouts;
}

TEST(Microscope, FindsNothingWhereNothingIsWrong) {
  for (const TrainConfig& config : some_layouts()) {
    SCOPED_TRACE(layout_flags(config));
    const ParityResult result = examined(config);
    EXPECT_FALSE(result.differs()) << result.ended << (result.wrong() ? result.wrong()->key.text() : "");
    // Enough was compared, and not all of it by chance far from its tolerance.
    EXPECT_GT(result.comparison.pieces, 1000U);
    // Weights that are gathered when they are used have no values before; a recomputed piece's input is another tensor.
    for (const TensorKey& key : result.comparison.not_compared)
      EXPECT_EQ(key.kind, config.zero_stage == 3 ? "weight" : "grad_input") << key.text();
    ASSERT_NE(result.comparison.closest(), nullptr);
    EXPECT_LT(result.comparison.closest()->worst.eps, 0.5 * result.comparison.closest()->tolerance);
  }
}

// Two runs of no steps, as from a checkpoint whose step is --train-iters, have no difference, and prove nothing.
TEST(Microscope, NoStepsAreNoProof) {
  TrainConfig config = small();
  config.parallel = {.world = 2, .tp = 2};
  config.train_iters = 0;
  for (const bool audits : {false, true}) {
    const ParityOptions none{.steps = 0};
    try {
      audits ? Microscope(world_of, none).examine(config) : examined(config, none);
      ADD_FAILURE() << "nothing is the same as nothing";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      EXPECT_THAT(error.what(), HasSubstr("no step was trained"));
      EXPECT_THAT(error.what(), HasSubstr("--train-iters 0"));
    }
  }
}

// All layouts of a dense and of an expert model, in each precision: many minutes.
TEST(Microscope, FindsNothingInAnyLayout) {
  if (!all_cases()) GTEST_SKIP() << "RANKLAB_ALL_CASES=1";
  for (const std::string precision : {"fp32", "bf16", "fp8"}) {
    for (const int64_t experts : {0, 8}) {
      TrainConfig base = small();
      if (precision == "bf16") base.bf16 = true;
      if (precision == "fp8") base.precision.recipe = "fp8_delayed";
      base.parallel = {.world = 8};
      base.model.num_layers = 8;
      base.model.num_attention_heads = 8;
      base.model.moe.num_experts = experts;
      base.global_batch_size = 16;
      std::map<int64_t, std::unique_ptr<Microscope>> references;  // by their microbatches
      for (const TrainConfig& config : every_layout(base)) {
        SCOPED_TRACE(precision + " " + layout_flags(config));
        const TrainConfig reference = on_one_rank(config);
        std::unique_ptr<Microscope>& scope = references[reference.num_microbatches];
        if (!scope) scope = std::make_unique<Microscope>(reference, world_of, ParityOptions{.narrow = false});
        EXPECT_FALSE(scope->examine(config).differs());
      }
    }
  }
}

TEST(Microscope, AnyLayoutCanBeTheReference) {
  TrainConfig config = small(), reference = small();
  config.parallel = {.world = 4, .tp = 4};
  reference.parallel = {.world = 4, .pp = 2, .dp = 2};
  reference.num_microbatches = 2;
  config.num_microbatches = 4;
  const ParityResult result = Microscope(reference, world_of, {}).examine(config);
  EXPECT_FALSE(result.differs());
  EXPECT_GT(result.comparison.pieces, 1000U);
}

TEST(Microscope, NamesTheMissingSumAndItsAxis) {
  TrainConfig config = small();
  config.parallel = {.world = 8, .tp = 4};
  config.inject = "norm-unreduced";
  const ParityResult result = examined(config);
  ASSERT_NE(result.wrong(), nullptr);
  EXPECT_EQ(result.wrong()->key.text(), "final_norm.weight grad");
  EXPECT_EQ(result.wrong()->key.step, 0);
  EXPECT_GT(result.wrong()->worst.eps, 1e3 * result.wrong()->tolerance);
  EXPECT_THAT(reasons(result), HasSubstr("the sum over tp is missing: the ranks' own gradients, added over tp and dp"));
  EXPECT_EQ(result.axis(), "tp");
  EXPECT_EQ(result.smallest, "--tp 4 --sequence-parallel");
}

// Bugs of all parts of a step that one layout can have.
constexpr const char* kTogether[] = {"init-per-shard",          "sampler-seed-per-rank", "scatter-wrong-group",
                                     "last-microbatch-local",   "norm-unreduced",        "norm-averaged",
                                     "clip-first-tp-rank-only", "stale-gather"};

// Two bugs at a time: each with the next, or with RANKLAB_ALL_CASES=1 with every other one.
TEST(Microscope, OfTwoBugsNamesTheFirst) {
  TrainConfig config = small();
  config.parallel = {.world = 4, .tp = 2, .dp = 2};
  config.model.num_layers = 2;
  config.zero_stage = 1;
  config.num_microbatches = 2;
  config.train_iters = 3;
  const Microscope scope(on_one_rank(config), world_of, {.steps = 3, .narrow = false});
  const auto first_wrong = [&](const std::string& bugs) {
    config.inject = bugs;
    const ParityResult result = scope.examine(config);
    if (result.wrong() == nullptr) return std::pair(std::ptrdiff_t{-1}, "nothing of " + bugs);
    const auto& all = result.comparison.verdicts;
    const auto place = result.wrong() - all.data();
    return std::pair(place, all[static_cast<size_t>(place)].key.text());
  };
  std::vector<std::pair<std::ptrdiff_t, std::string>> alone;
  for (const char* bug : kTogether) alone.push_back(first_wrong(bug));
  for (size_t a = 0; a + 1 < alone.size(); ++a)
    for (size_t b = a + 1; b < (all_cases() ? alone.size() : a + 2); ++b)
      EXPECT_EQ(first_wrong(std::string(kTogether[a]) + "," + kTogether[b]), std::min(alone[a], alone[b]))
          << kTogether[a] << " and " << kTogether[b];
}

// Each run resumes from a checkpoint that another layout wrote; one that was trained differently differs from its first
// weight on.
TEST(Microscope, HoldsTwoCheckpointsOfOtherLayoutsToEachOther) {
  const std::string folder = testing::TempDir() + "parity_checkpoints_" + std::to_string(::getpid());
  std::filesystem::remove_all(folder);
  const auto saved = [&](const char* name, const ParallelDims& dims, double lr) {
    TrainConfig config = small("fp64");
    config.parallel = dims;
    config.zero_stage = dims.dp > 1 ? 1 : 0;
    config.lr = lr;
    config.save_dir = folder + "/" + name;
    trained(config, world_of);
    return config.save_dir;
  };
  const auto from = [](const std::string& checkpoint, const ParallelDims& dims) {
    TrainConfig config = small("fp64");
    config.parallel = dims;
    config.load = checkpoint;
    config.train_iters = 4;
    return config;
  };
  const std::string replicas = saved("replicas", {.world = 4, .dp = 4}, 1e-3),
                    stages = saved("stages", {.world = 4, .tp = 2, .pp = 2}, 1e-3),
                    other = saved("other", {.world = 2, .tp = 2}, 2e-3);
  const ParallelDims here = {.world = 2, .tp = 2}, there = {.world = 2, .dp = 2};
  const Microscope scope(from(replicas, there), world_of, {.narrow = false});
  const ParityResult same = scope.examine(from(stages, here));
  EXPECT_FALSE(same.differs()) << same.ended << (same.wrong() != nullptr ? same.wrong()->key.text() : "");
  EXPECT_EQ(same.comparison.verdicts.front().key.step, 2) << "where the checkpoints end";
  const ParityResult different = scope.examine(from(other, here));
  ASSERT_NE(different.wrong(), nullptr);
  EXPECT_EQ(different.wrong()->key.text(), "embedding.weight weight");
  std::filesystem::remove_all(folder);
}

TEST(Microscope, HoldsAModelOfOnesOwnToOneRank) {
  const auto own_model = [](std::shared_ptr<World> world, const RunPlan& plan) {
    RuntimeComponents parts = default_components(std::move(world), plan);
    parts.model_provider = provide_layers(
        [](const StackContext& stack, const RunPlan& p) { return std::make_unique<examples::Counter>(stack, p); });
    return parts;
  };
  TrainConfig config = small("fp64");
  config.parallel = {.world = 8, .tp = 2, .pp = 2};
  const Microscope scope(on_one_rank(config), world_of, {.components = own_model});
  const ParityResult right = scope.examine(config);
  EXPECT_FALSE(right.differs()) << right.wrong()->key.text();
  EXPECT_TRUE(scope.reference().has({0, ParityPhase::kBackward, "layers.3.up.weight", "grad"}));
  config.inject = "last-stage-unsynced";
  const ParityResult wrong = scope.examine(config);
  ASSERT_NE(wrong.wrong(), nullptr);
  EXPECT_EQ(wrong.wrong()->key.kind, "grad");
  EXPECT_EQ(wrong.axis(), "dp");
}

// Weights that are changed by hand on one rank, once: what no reduction explains.
std::shared_ptr<OptimizerRuntime> with_wrong_rank(std::shared_ptr<OptimizerRuntime> right, int wrong_rank) {
  return wrap_optimizers(std::move(right), [wrong_rank](const OptimizerRuntime& inner, CausalLm& model,
                                                        RankContext& ctx, const RunPlan& plan) {
    auto optimizer = inner.initialize(model, ctx, plan);
    if (ctx.global_rank() == wrong_rank) {
      const at::NoGradGuard no_grad;
      model.registry().find("layers.2.mlp_norm.weight")->data[5].mul_(1 + 1e-6);
    }
    return optimizer;
  });
}

TEST(Compare, OneElementOnOneRankIsFound) {
  TrainConfig config = small("fp64");
  config.parallel = {.world = 4, .tp = 2, .dp = 2};
  const Microscope scope(on_one_rank(config), world_of, {.steps = 1});
  const auto components = [](std::shared_ptr<World> world, const RunPlan& plan) {
    RuntimeComponents parts = default_components(std::move(world), plan);
    parts.optimizer_runtime = with_wrong_rank(parts.optimizer_runtime, 3);
    return parts;
  };
  const ParityRecord got = record_run(config, world_of, {.steps = 1, .components = components});
  const ParityComparison result = compare(got, scope.reference());
  ASSERT_NE(result.first_wrong(), nullptr);
  const TensorVerdict& wrong = *result.first_wrong();
  EXPECT_EQ(wrong.key.text(), "layers.2.mlp_norm.weight weight");
  EXPECT_EQ(wrong.wrong_ranks, std::vector<int>{3});
  EXPECT_EQ(wrong.right_ranks, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(wrong.worst.place, 5);
  EXPECT_NEAR(wrong.worst.got / wrong.worst.want - 1, 1e-6, 1e-12);
  EXPECT_EQ(where_wrong(got, scope.reference(), wrong), "1 of 32 elements, within [5:6]");
}

TEST(ParityMemory, IsAboutWhatARecordKeeps) {
  for (const TrainConfig& config : some_layouts()) {
    SCOPED_TRACE(layout_flags(config));
    const ParityRecord record = record_run(config, world_of, {.steps = 2});
    double kept = 0;
    for (const TensorPieces* tensors : {&record.tensors, &record.local_grads})
      for (const auto& [key, pieces] : *tensors)
        for (const TensorPiece& piece : pieces) kept += static_cast<double>(piece.value.nbytes());
    const auto told = static_cast<double>(kept_bytes(*record.plan, 2));
    EXPECT_GT(told / kept, 0.7);
    EXPECT_LT(told / kept, 1.5);
    EXPECT_THROW(check_parity_memory(*record.plan, nullptr, 2, static_cast<int64_t>(told / 2)), Error);
    EXPECT_NO_THROW(check_parity_memory(*record.plan, nullptr, 2, static_cast<int64_t>(told)));
    EXPECT_THROW(check_parity_memory(*record.plan, record.plan.get(), 2, static_cast<int64_t>(told)), Error);
  }
}

// How far a step with its sums in another order is from one in the usual order, of which nothing is wrong: in forward,
// and of gradients.
std::pair<double, double> moved_by(const SumOrder& order, const TrainConfig& config) {
  const ParityReference reference(record_run(config, world_of, {.steps = 1}), {});
  const ParityComparison result = compare(record_run(config, world_of, {.steps = 1, .order = order}), reference);
  EXPECT_EQ(result.first_wrong(), nullptr);
  EXPECT_TRUE(result.not_compared.empty());
  double forward = 0, grads = 0;
  for (const TensorVerdict& one : result.verdicts) {
    if (one.key.phase == ParityPhase::kForward) forward = std::max(forward, one.worst.eps);
    if (one.key.kind == "grad") grads = std::max(grads, one.worst.eps);
  }
  return {forward, grads};
}

// Microbatches in reverse are the same training: only sums of gradients are rounded in another order.
TEST(RecordRun, InReverseAddsInAnotherOrder) {
  TrainConfig config = small();
  config.num_microbatches = 3;
  config.global_batch_size = 6;
  const auto [forward, grads] = moved_by({.reversed = true}, on_one_rank(config));
  EXPECT_EQ(forward, 0);
  EXPECT_GT(grads, 0);
}

// Products in two halves are the same training: forward and gradients are rounded in another order.
TEST(RecordRun, InHalvesAddsInAnotherOrder) {
  const auto [forward, grads] = moved_by({.split = true}, on_one_rank(small()));
  EXPECT_GT(forward, 0);
  EXPECT_GT(grads, 0);
  EXPECT_FALSE(products_are_split) << "the step is over";
}

TEST(GlobalSlice, PlacesElementsAndPadding) {
  GlobalSlice slice = whole_slice({4, 3});
  EXPECT_TRUE(slice.is_whole());
  slice.positions[0] = {3, 1, 4};  // 4 is padding
  EXPECT_EQ(slice.elements(), 9);
  EXPECT_TRUE(at::equal(slice.index(), at::tensor({9, 10, 11, 3, 4, 5, -1, -1, -1}, at::kLong)));
  slice.begin = 2;
  slice.end = 5;
  EXPECT_TRUE(at::equal(slice.index(), at::tensor({11, 3, 4}, at::kLong)));
  EXPECT_EQ(coordinates_text(11, {4, 3}), "[3, 2]");
}

TEST(SmallerLayouts, KeepBatchesAndMicrobatches) {
  TrainConfig config = small();
  config.parallel = {.world = 8, .tp = 2, .pp = 2};
  config.zero_stage = 1;
  const RunPlan plan = resolve(config);
  std::vector<std::string> axes;
  for (const SmallerLayout& smaller : smaller_layouts(config)) {
    axes.push_back(smaller.axis);
    const RunPlan less = resolve(smaller.config);
    EXPECT_EQ(less.micro_batch_size, plan.micro_batch_size) << smaller.flags;
    EXPECT_EQ(less.num_microbatches * less.dp(), plan.num_microbatches * plan.dp()) << smaller.flags;
    EXPECT_NE(layout_flags(smaller.config), smaller.axis == "overlap of reductions" ? "" : layout_flags(config));
  }
  for (const char* axis : {"tp", "dp", "pp", "sequence parallelism", "ZeRO"}) EXPECT_THAT(axes, Contains(axis));
}

TEST(EveryLayout, HasEachSplitOnce) {
  TrainConfig base = small();
  base.parallel = {.world = 8};
  base.model.num_layers = 8;
  base.model.num_attention_heads = 8;
  base.global_batch_size = 16;
  EXPECT_EQ(every_split(8).size(), 20U);  // 2^3 into four factors
  std::vector<std::string> flags;
  for (const TrainConfig& config : every_layout(base)) {
    std::string text = layout_flags(config) + name(config.context_split.exchange).data();
    EXPECT_THAT(flags, testing::Not(Contains(text)));
    flags.push_back(text);
  }
  EXPECT_GT(flags.size(), 100U);
}

}  // namespace
}  // namespace ranklab
