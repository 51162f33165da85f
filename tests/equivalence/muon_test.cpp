// Muon in its three forms: the same bits as one rank wherever the layout's gradients are one rank's, as plain data
// parallelism with every ZeRO stage, and twelve digits in layouts that add in another order (composition_test.cpp
// crosses it with all else). What it sends in a step is counted.
#include <gtest/gtest.h>

#include <map>

#include "tests/support/expect_training.h"
#include "tests/support/model_variants.h"
#include "tests/support/small_config.h"
#include "tests/support/uneven_batches.h"

namespace ranklab {
namespace {

constexpr MuonDistribution kMuonForms[] = {MuonDistribution::kDuplicated, MuonDistribution::kDistributed,
                                           MuonDistribution::kLayerSharded};

std::string text(MuonDistribution form) { return std::string(kMuonDistributions[static_cast<size_t>(form)]); }

// Shards that do not fill their cache lines, so that matrices are cut at odd places.
TrainConfig muon_config() {
  TrainConfig c = small_config();
  c.model.num_layers = 2;
  c.model.hidden_size = 36;
  c.model.ffn_hidden_size = 50;
  c.model.num_attention_heads = 6;
  c.model.vocab_size = 261;
  c.params_dtype = "fp32";
  c.global_batch_size = 16;
  c.train_iters = 3;
  c.adam_eps = 1e-8;
  c.trace = false;
  c.ddp_bucket_bytes = 20000;
  c.optimizer = OptimizerKind::kMuon;
  return c;
}

// With pairwise accumulation data-parallel ranks and microbatches are the leaves of one tree (exact_test.cpp), and a
// pipeline adds what one rank adds.
TEST(Muon, IsOneRankBitForBit) {
  for (const char* dtype : {"fp32", "fp64"}) {
    TrainConfig one = muon_config();
    one.params_dtype = dtype;
    one.accumulation = Accumulation::kPairwise;
    one.parallel = {.world = 1, .tp = 1, .pp = 1};
    one.num_microbatches = 8;
    const TrainingRecord reference = record_training(one, {.data = uneven_batches()});
    for (const auto& [dp, pp] : {std::pair{8, 1}, {4, 1}, {1, 2}, {2, 2}, {4, 2}}) {
      for (int stage = 0; stage < static_cast<int>(kZeroStages.size()); ++stage) {
        for (const MuonDistribution form : kMuonForms) {
          if (dp == 1 && (stage > 0 || form != MuonDistribution::kDuplicated)) continue;
          SCOPED_TRACE(std::string(dtype) + " dp " + std::to_string(dp) + " pp " + std::to_string(pp) + " ZeRO " +
                       std::to_string(stage) + " " + text(form));
          TrainConfig c = one;
          c.parallel = {.world = dp * pp, .tp = 1, .pp = pp};
          c.num_microbatches = 8 / dp;
          c.zero_stage = stage;
          c.muon_distribution = form;
          expect_same_training(record_training(c, {.data = uneven_batches()}), reference, {.loss = 1e-6});
        }
      }
    }
  }
}

struct MuonLayout {
  const char* name;
  ParallelDims dims;
  void (*change)(TrainConfig&) = [](TrainConfig&) {};
};

void some_experts(TrainConfig& c) {
  variant_named("deepseek").change(c.model);
  c.num_microbatches = 2;
}
void in_bf16(TrainConfig& c) { c.bf16 = true; }
void both_ways(TrainConfig& c) {
  c.pipeline_schedule = "dualpipe";
  c.num_microbatches = 4;
}
void some_heads_clipped(TrainConfig& c) {
  c.model.init_std = 0.3;
  c.qk_clip = true;
  c.qk_clip_threshold = 2;
}
void steps_in_bf16(TrainConfig& c) { c.muon_ns_dtype = "bf16"; }

const MuonLayout kMuonLayouts[] = {
    {"dp4", {.world = 4}},
    {"dp4_tp2", {.world = 8, .tp = 2}},
    {"dp2_tp2_pp2", {.world = 8, .tp = 2, .pp = 2}},
    {"dp2_pp2_tied", {.world = 4, .pp = 2}, [](TrainConfig& c) { c.model.tie_embeddings = true; }},
    {"dp2_pp2_dualpipe", {.world = 4, .pp = 2}, both_ways},
    {"dp2_cp2_tp2", {.world = 8, .tp = 2, .cp = 2}},
    {"dp4_ep2", {.world = 4, .ep = 2}, some_experts},
    {"dp4_tp2_ep2", {.world = 8, .tp = 2, .ep = 2}, some_experts},
    {"dp2_tp2_etp2_ep2", {.world = 8, .tp = 2, .ep = 2, .etp = 2}, some_experts},
    {"dp8_in_two_groups", {.world = 8, .replicas = 2}},
    {"dp8_ep2_in_two_groups", {.world = 8, .ep = 2, .replicas = 2}, some_experts},
    {"dp4_bf16", {.world = 4}, in_bf16},
    {"dp4_bf16_clipped_heads", {.world = 4}, [](TrainConfig& c) { in_bf16(c), some_heads_clipped(c); }},
    {"dp4_pp2_ep2_bf16", {.world = 8, .pp = 2, .ep = 2}, [](TrainConfig& c) { some_experts(c), in_bf16(c); }},
    {"dp2_tp2_steps_in_bf16", {.world = 4, .tp = 2}, steps_in_bf16},
};

class MuonLayouts : public testing::TestWithParam<MuonLayout> {};

TEST_P(MuonLayouts, EveryFormAndStageIsPlainDataParallelismBitForBit) {
  TrainConfig plain = muon_config();
  plain.parallel = GetParam().dims;
  GetParam().change(plain);
  TrainConfig without_groups = plain;
  without_groups.parallel.replicas = 1;
  const TrainingRecord reference = record_training(without_groups);
  for (int stage = 0; stage < static_cast<int>(kZeroStages.size()); ++stage) {
    for (const MuonDistribution form : kMuonForms) {
      if (stage == 0 && plain.parallel.replicas > 1) continue;
      if (stage == 0 && form == MuonDistribution::kDuplicated) continue;  // the reference
      SCOPED_TRACE("ZeRO " + std::to_string(stage) + " " + text(form));
      TrainConfig c = plain;
      c.zero_stage = stage;
      c.muon_distribution = form;
      expect_same_training(record_training(c), reference, {});
    }
  }
}

// Another layout than one rank's adds in another order, but for that it is the same training: no matrix is
// orthogonalized in parts.
TEST_P(MuonLayouts, AgreeWithOneRankToTwelveDigits) {
  TrainConfig c = muon_config();
  c.parallel = GetParam().dims;
  GetParam().change(c);
  if (c.bf16 || c.muon_ns_dtype == "bf16") GTEST_SKIP() << "rounds to fewer digits";
  c.params_dtype = "fp64";
  c.adam_eps = 1e-6;
  c.zero_stage = 1;
  c.muon_distribution = MuonDistribution::kDistributed;
  expect_same_training(record_training(c), record_training(on_one_rank(c)), kRounding);
}

INSTANTIATE_TEST_SUITE_P(All, MuonLayouts, testing::ValuesIn(kMuonLayouts),
                         [](const auto& c) { return std::string(c.param.name); });

using Calls = std::map<std::pair<Axis, Verb>, int>;

// Calls in a rank's last optimizer phase.
Calls calls_of(const RankTrace& trace) {
  const Event* phase = nullptr;
  for (const Event& event : trace.events)
    if (event.kind == EventKind::kPhase && trace.names[event.name] == "optimizer") phase = &event;
  Calls calls;
  if (phase == nullptr) return calls;
  for (const Event& event : trace.events)
    if (event.kind == EventKind::kCollective && event.wall_begin_ns >= phase->wall_begin_ns &&
        event.wall_end_ns <= phase->wall_end_ns)
      ++calls[{event.axis, event.verb}];
  return calls;
}

// Two layers of four matrices; all hidden matrices of a rank are in one bucket.
Calls calls_in(ParallelDims dims, int stage, MuonDistribution form, OptimizerKind kind = OptimizerKind::kMuon) {
  TrainConfig c = muon_config();
  c.trace = true;
  c.train_iters = 1;
  c.ddp_bucket_bytes = 1 << 24;
  c.parallel = dims;
  c.zero_stage = stage;
  c.muon_distribution = form;
  c.optimizer = kind;
  return calls_of(record_training(c).traces.at(0));
}

// The table of docs/parallelism.md.
TEST(Muon, SendsWhatItsFormNeeds) {
  using F = MuonDistribution;
  const std::pair gather{Axis::kDp, Verb::kAllGather}, exchange{Axis::kDp, Verb::kAllToAll},
      whole{Axis::kTp, Verb::kAllGather};
  const ParallelDims dp{.world = 4}, dp_tp{.world = 8, .tp = 2};
  EXPECT_EQ(calls_in(dp, 1, F::kDuplicated, OptimizerKind::kAdamW), Calls{});
  EXPECT_EQ(calls_in({.world = 1}, 0, F::kDuplicated), Calls{});
  EXPECT_EQ(calls_in(dp, 0, F::kDuplicated), Calls{});
  EXPECT_EQ(calls_in(dp, 0, F::kDistributed), (Calls{{gather, 1}}));
  EXPECT_EQ(calls_in(dp, 0, F::kLayerSharded), (Calls{{gather, 1}}));
  for (const int stage : {1, 2}) {
    EXPECT_EQ(calls_in(dp, stage, F::kDuplicated), (Calls{{gather, 1}}));
    EXPECT_EQ(calls_in(dp, stage, F::kDistributed), (Calls{{exchange, 2}}));
    EXPECT_EQ(calls_in(dp, stage, F::kLayerSharded), Calls{});
    EXPECT_EQ(calls_in(dp_tp, stage, F::kDuplicated), (Calls{{gather, 1}, {whole, 1}}));
    EXPECT_EQ(calls_in(dp_tp, stage, F::kDistributed), (Calls{{exchange, 2}, {whole, 1}}));
    EXPECT_EQ(calls_in(dp_tp, stage, F::kLayerSharded), (Calls{{whole, 1}}));
  }
  // A unit of stage 3 has buckets of its own: two layers.
  EXPECT_EQ(calls_in(dp, 3, F::kDuplicated), (Calls{{gather, 2}}));
  EXPECT_EQ(calls_in(dp, 3, F::kDistributed), (Calls{{exchange, 4}}));
  EXPECT_EQ(calls_in(dp, 3, F::kLayerSharded), (Calls{{exchange, 4}}));
}

}  // namespace
}  // namespace ranklab
