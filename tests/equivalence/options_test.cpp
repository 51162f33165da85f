// Attention dropout and growing batches in every layout against one rank: the same bits where the layout's gradients
// are one rank's, else twelve digits. composition_test.cpp crosses both with all else.
#include <gtest/gtest.h>

#include "tests/support/expect_training.h"
#include "tests/support/model_variants.h"
#include "tests/support/recompute.h"
#include "tests/support/small_config.h"
#include "tests/support/uneven_batches.h"

namespace ranklab {
namespace {

struct OptionLayout {
  const char* name;
  ParallelDims dims;
  bool exact;  // adds what one rank adds
  void (*change)(TrainConfig&) = [](TrainConfig&) {};
};

template <ContextExchange kExchange, SequenceBalance kBalance>
void exchange(TrainConfig& c) {
  c.context_split = {kExchange, kBalance};
}

const OptionLayout kOptionLayouts[] = {
    {"dp4", {.world = 4}, true},
    {"pp2", {.world = 2, .pp = 2}, true},
    {"dp2_pp2_zb_h1", {.world = 4, .pp = 2}, true, [](TrainConfig& c) { c.pipeline_schedule = "zb-h1"; }},
    {"dp4_recompute", {.world = 4}, true, recompute_all},
    {"pp2_selective", {.world = 2, .pp = 2}, true, recompute_selectively},
    {"tp2", {.world = 2, .tp = 2}, false},
    {"tp4_no_sp", {.world = 4, .tp = 4}, false, [](TrainConfig& c) { c.sequence_parallel = false; }},
    {"dp2_tp2_pp2", {.world = 8, .tp = 2, .pp = 2}, false},
    {"cp2_ring", {.world = 2, .cp = 2}, false, exchange<ContextExchange::kP2p, SequenceBalance::kZigzag>},
    {"cp4_ring_stripes", {.world = 4, .cp = 4}, false, exchange<ContextExchange::kP2p, SequenceBalance::kStripe>},
    {"cp4_gathered", {.world = 4, .cp = 4}, false, exchange<ContextExchange::kAllGather, SequenceBalance::kZigzag>},
    {"cp2_heads_tp2",
     {.world = 4, .tp = 2, .cp = 2},
     false,
     exchange<ContextExchange::kAllToAll, SequenceBalance::kContiguous>},
    {"cp4_two_levels", {.world = 4, .cp = 4}, false, exchange<ContextExchange::kAllToAllP2p, SequenceBalance::kZigzag>},
    {"cp2_gathered_recompute",
     {.world = 2, .cp = 2},
     false,
     [](TrainConfig& c) {
       exchange<ContextExchange::kAllGather, SequenceBalance::kContiguous>(c), recompute_selectively(c);
     }},
};

TrainConfig options_config(const char* variant) {
  TrainConfig c = small_config();
  variant_named(variant).change(c.model);
  c.model.attention_dropout = 0.25;
  c.accumulation = Accumulation::kPairwise;
  c.num_microbatches = 4;
  c.train_iters = 3;
  c.trace = false;
  return c;
}

class Options : public testing::TestWithParam<OptionLayout> {};

TEST_P(Options, AttentionDropoutDropsWhatOneRankDrops) {
  for (const char* variant : {"llama_gqa", "latent", "some_windows"}) {
    SCOPED_TRACE(variant);
    TrainConfig one = options_config(variant);
    TrainConfig split = one;
    split.parallel = GetParam().dims;
    GetParam().change(split);
    const ParallelDims& dims = GetParam().dims;
    split.num_microbatches = one.num_microbatches * dims.tp * dims.cp * dims.pp / dims.world;
    const TrainingRecord want = record_training(one, {.data = uneven_batches()});
    const Tolerance bits{.loss = 1e-6};
    expect_same_training(record_training(split, {.data = uneven_batches()}), want, GetParam().exact ? bits : kRounding);
  }
}

// Batches of 4, 6 and 8 sequences in microbatches of one.
TEST_P(Options, GrowingBatchesAreOneRanks) {
  TrainConfig one = options_config("llama_gqa");
  one.model.attention_dropout = 0;
  one.model.dropout = 0.1;
  one.accumulation = Accumulation::kSequential;
  one.num_microbatches = 0;
  one.micro_batch_size = 1;
  one.rampup_batch_size = "4 2 10";
  TrainConfig split = one;
  split.parallel = GetParam().dims;
  GetParam().change(split);
  const ParallelDims& dims = GetParam().dims;
  if (dims.world / (dims.tp * dims.cp * dims.pp) == 4) split.rampup_batch_size = one.rampup_batch_size = "4 4 10";
  const TrainingRecord want = record_training(one, {.data = uneven_batches()});
  const TrainingRecord got = record_training(split, {.data = uneven_batches()});
  const bool same_order = GetParam().exact && dims.pp == dims.world;
  expect_same_training(got, want, same_order ? Tolerance{.loss = 1e-12} : kRounding);
}

INSTANTIATE_TEST_SUITE_P(All, Options, testing::ValuesIn(kOptionLayouts),
                         [](const auto& c) { return std::string(c.param.name); });

// Whole batches of a run's own data: the position in the data, the tokens that are counted, and how many steps samples
// make.
TEST(GrowingBatches, CountWhatTheyTrainOn) {
  TrainConfig c = small_config();
  c.parallel = {.world = 4, .pp = 2};
  c.micro_batch_size = 1;
  c.rampup_batch_size = "4 2 20";
  c.train_iters = 8;
  const TrainingRecord record = record_training(c);
  std::vector<int64_t> sequences;
  for (const StepMetrics& step : record.steps) sequences.push_back(step.tokens / c.model.seq_length);
  EXPECT_EQ(sequences, (std::vector<int64_t>{4, 4, 4, 6, 6, 8, 8, 8}));
}

}  // namespace
}  // namespace ranklab
