// Every pipeline schedule against one pipeline rank with the same microbatches. Tier E: losses, gradients and weights
// bit for bit, where gradients are added in the order of the microbatches. Tier U (fp64, 1e-12) where a parameter's
// gradient is put together from two stages: tied embeddings, and DualPipe, whose two models see half of the
// microbatches each.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <initializer_list>

#include "core/pipeline/csv.h"
#include "core/pipeline/schedules.h"
#include "core/pipeline/verify.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "tests/cli/run_program.h"
#include "tests/cpu_sim/test_world.h"
#include "tests/support/expect_training.h"
#include "tests/support/model_variants.h"
#include "tests/support/small_config.h"

namespace ranklab {
namespace {

TrainConfig pipeline_config() {
  TrainConfig c = small_config();
  c.num_microbatches = 8;
  return c;
}

// Bits also need the same dp and tp, which are proven against one rank elsewhere.
TrainingRecord reference(const TrainConfig& config) { return record_training(without_pipeline(config)); }

Tolerance bits() { return {.first = test_device_bits()}; }

// Two stages under each schedule, against none: bits, but for DualPipe's two models.
void expect_schedules_change_nothing(const TrainConfig& config, std::initializer_list<const char*> schedules) {
  const TrainingRecord want = reference(config);
  for (const std::string name : schedules) {
    SCOPED_TRACE(name);
    expect_same_training(record_training(with_pipeline(config, name, 2)), want,
                         name == "dualpipe" ? kRounding : bits());
  }
}

// Where a rank has both ends of the model, an embedding's gradient of a microbatch is the sum of both stages', before
// microbatches are added up in pairs. DualPipe's copies add up their own, then each other's.
TEST(Pipeline, PairsOfMicrobatchesAreAddedWhereARankHasTheEmbeddingTwice) {
  for (const int predicted : {0, 1}) {
    SCOPED_TRACE(predicted);
    TrainConfig config = pipeline_config();
    config.model.tie_embeddings = predicted == 0;
    config.model.mtp_num_layers = predicted;
    config.accumulation = Accumulation::kPairwise;
    config.train_iters = 2;
    expect_schedules_change_nothing(config, {"zb-v", "dualpipe-v", "dualpipe"});
  }
}

// Every schedule of the list that can run at all: new rows are tested without a change here.
TEST(Pipeline, EveryScheduleEqualsOneRank) {
  TrainConfig config = pipeline_config();
  config.model.num_layers = 8;
  const TrainingRecord want = reference(config);
  for (const ScheduleKind& kind : schedule_kinds()) {
    for (const int pp : {2, 4, 8}) {
      const bool two_models = std::string(kind.name) == "dualpipe";
      const bool wants_two_each = std::string(kind.name).starts_with("dualpipe");  // microbatches for each rank
      if (pp * std::max(kind.chunks, 1) > 8 || (wants_two_each && pp > 4)) continue;
      SCOPED_TRACE(std::string(kind.name) + ", pp " + std::to_string(pp));
      expect_same_training(record_training(with_pipeline(config, kind.name, pp)), want,
                           two_models ? kRounding : bits());
    }
  }
}

TEST(Pipeline, SeveralStagesARankEqualOneRank) {
  TrainConfig config = pipeline_config();
  config.model.num_layers = 8;
  const TrainingRecord want = reference(config);
  for (const char* name : {"interleaved-1f1b", "looped-bfs", "1f1b"}) {
    SCOPED_TRACE(name);
    expect_same_training(record_training(with_pipeline(config, name, 2, 4)), want, bits());
    expect_same_training(record_training(with_pipeline(config, name, 4, 2)), want, bits());
    expect_same_training(record_training(with_pipeline(config, name, 1, 4)), want, bits());
  }
}

// Of 8 microbatches: all of them, and groups of which the last one is smaller.
TEST(Pipeline, LargerGroupsOfInterleavedStagesEqualOneRank) {
  TrainConfig config = pipeline_config();
  config.model.num_layers = 8;
  const TrainingRecord want = reference(config);
  for (const auto& [pp, group] : {std::pair{2, 3}, {2, 6}, {4, 8}, {3, 5}}) {
    SCOPED_TRACE(testing::Message() << "pp " << pp << ", groups of " << group);
    TrainConfig cut = with_pipeline(config, "interleaved-1f1b", pp, 2);
    cut.microbatch_group = group;
    expect_same_training(record_training(cut), want, bits());
  }
}

TEST(Pipeline, ComposesWithTensorSequenceAndDataParallelism) {
  for (const auto& [dp, tp, sp] :
       {std::tuple{1, 2, false}, std::tuple{1, 2, true}, std::tuple{2, 1, false}, std::tuple{2, 2, true}}) {
    SCOPED_TRACE("dp " + std::to_string(dp) + " tp " + std::to_string(tp) + (sp ? " sp" : ""));
    TrainConfig config = pipeline_config();
    config.parallel = {.world = dp * tp, .tp = tp};
    config.num_microbatches = 4;
    config.sequence_parallel = sp;
    config.model.add_bias = true;
    config.model.dropout = 0.1;
    expect_schedules_change_nothing(config, {"1f1b", "zb-h1", "zb-v", "dualpipe-v"});
  }
}

TEST(Pipeline, RanksThatShareAKeyValueHead) {
  for (const bool sp : {false, true}) {
    SCOPED_TRACE(sp ? "sp" : "no sp");
    TrainConfig config = pipeline_config();
    config.parallel = {.world = 4, .tp = 4};
    config.num_microbatches = 4;
    config.sequence_parallel = sp;
    config.model.num_query_groups = 2;
    config.model.kv_channels = 12;
    config.model.add_qkv_bias = true;
    config.model.qk_norm = true;
    expect_schedules_change_nothing(config, {"1f1b", "zb-h1"});
  }
}

TrainConfig of_two_tp_ranks() {
  TrainConfig config = pipeline_config();
  config.parallel = {.world = 2, .tp = 2};
  config.num_microbatches = 4;
  return config;
}

TEST(Pipeline, StretchedPositionsAndBiasesOfAttention) {
  TrainConfig config = of_two_tp_ranks();
  config.model.num_query_groups = 2;
  config.model.add_attention_bias = true;
  config.model.window_size = config.model.seq_length / 3;
  config.model.rope_scaling = {
      .kind = RopeScalingKind::kLlama3, .factor = 4, .original_seq_length = config.model.seq_length / 2};
  expect_schedules_change_nothing(config, {"1f1b", "zb-v", "dualpipe-v"});
  config.model.rope_scaling.kind = RopeScalingKind::kDynamic;
  expect_schedules_change_nothing(config, {"zb-h1"});
}

// Every stage and chunk knows which of all layers its own are.
TEST(Pipeline, WindowsInSomeLayers) {
  TrainConfig config = pipeline_config();
  config.num_microbatches = 4;
  config.model.window_size = 3;
  config.model.window_layers = {.skip_freq = 3};
  config.model.local_rope_theta = 50;
  expect_schedules_change_nothing(config, {"1f1b", "interleaved-1f1b", "zb-v", "dualpipe-v"});
}

// Norms behind branches and of all heads; Gemma's forms; branches of the same input.
TEST(Pipeline, OtherFormsOfABlock) {
  for (const char* variant : {"olmo2", "gemma2", "gpt_neox", "phi2"}) {
    SCOPED_TRACE(variant);
    TrainConfig config = of_two_tp_ranks();
    variant_named(variant).change(config.model);
    config.model.tie_embeddings = false;  // tied ones are a sum of two stages
    config.model.add_head_bias = config.model.residual_form != ResidualForm::kSequential;
    expect_schedules_change_nothing(config, {"1f1b", "zb-h1", "zb-v", "dualpipe-v"});
  }
}

TEST(Pipeline, NormsOfHeadsAndBiasesOfTheirProjection) {
  TrainConfig config = of_two_tp_ranks();
  config.model.num_query_groups = 2;
  config.model.kv_channels = 12;
  config.model.add_qkv_bias = true;
  config.model.qk_norm = true;
  expect_schedules_change_nothing(config, {"1f1b", "zb-h1", "zb-v", "dualpipe", "dualpipe-v"});
}

TEST(Pipeline, Gpt2KindWithSgdInFp32) {
  TrainConfig config = pipeline_config();
  config.params_dtype = "fp32";
  config.optimizer = OptimizerKind::kSgd;
  config.model.norm = NormKind::kLayerNorm;
  config.model.position = PositionKind::kLearned;
  config.model.activation = ActivationKind::kGelu;
  config.model.add_bias = true;
  config.model.dropout = 0.2;
  const TrainingRecord want = reference(config);
  for (const char* name : {"gpipe", "1f1b", "zb-h2"})
    expect_same_training(record_training(with_pipeline(config, name, 4)), want, bits());
}

TEST(Pipeline, TiedEmbeddings) {
  for (const auto& [name, pp, dp] :
       {std::tuple{"1f1b", 4, 1}, std::tuple{"1f1b", 2, 2}, std::tuple{"zb-h1", 2, 1}, std::tuple{"zb-v", 2, 2},
        std::tuple{"dualpipe", 2, 1}, std::tuple{"dualpipe", 4, 1}, std::tuple{"zb-h1", 1, 2}}) {
    SCOPED_TRACE(std::string(name) + ", pp " + std::to_string(pp) + " dp " + std::to_string(dp));
    TrainConfig config = pipeline_config();
    config.parallel = {.world = dp, .tp = 1};
    config.global_batch_size = 8 * dp;
    config.model.tie_embeddings = true;
    expect_same_training(record_training(with_pipeline(config, name, pp)), reference(config), kRounding);
  }
}

// MTP sits on the last stage, which embeds tokens as the first one does, and uses the head several times.
TEST(Pipeline, LatentAttentionAndTokenPrediction) {
  for (const auto& [name, pp, dp, tp] :
       {std::tuple{"1f1b", 2, 1, 2}, std::tuple{"1f1b", 4, 2, 1}, std::tuple{"zb-h1", 2, 1, 2},
        std::tuple{"interleaved-1f1b", 2, 1, 1}, std::tuple{"zb-v", 2, 2, 1}, std::tuple{"dualpipe", 2, 1, 1},
        std::tuple{"dualpipe-v", 2, 1, 2}, std::tuple{"zb-h1", 1, 2, 1}}) {
    for (const bool tied : {false, true}) {
      SCOPED_TRACE(std::string(name) + ", pp " + std::to_string(pp) + " dp " + std::to_string(dp) + " tp " +
                   std::to_string(tp) + (tied ? " tied" : ""));
      TrainConfig config = pipeline_config();
      config.parallel = {.world = dp * tp, .tp = tp};
      config.global_batch_size = 8 * dp;
      config.model.mla = {
          .q_lora_rank = 10, .kv_lora_rank = 6, .qk_head_dim = 6, .qk_pos_emb_head_dim = 4, .v_head_dim = 5};
      config.model.yarn = {.scaling_factor = 2, .original_seq_length = 16};
      config.model.mtp_num_layers = 2;
      config.model.tie_embeddings = tied;
      const int64_t vpp = std::string(name) == "interleaved-1f1b" ? 2 : 1;
      expect_same_training(record_training(with_pipeline(config, name, pp, vpp)), reference(config), kRounding);
    }
  }
}

TEST(Pipeline, UnevenLayers) {
  TrainConfig config = pipeline_config();
  config.model.num_layers = 7;
  const TrainingRecord want = reference(config);
  TrainConfig uneven = with_pipeline(config, "1f1b", 4);
  expect_same_training(record_training(uneven), want, bits());
  EXPECT_EQ(resolve(uneven).stage_layers, (std::vector<int64_t>{2, 2, 2, 1}));
  for (const char* layout : {"1,3,1,2", "0,3,4,0", "3,0,4,0", "Et*3||tt,tt|L"}) {
    uneven.pipeline_layout = layout;
    expect_same_training(record_training(uneven), want, bits());
  }
}

TEST(Pipeline, FewerMicrobatchesThanRanks) {
  TrainConfig config = pipeline_config();
  for (const int64_t microbatches : {1, 2}) {
    config.num_microbatches = microbatches;
    const TrainingRecord want = reference(config);
    for (const char* name : {"gpipe", "1f1b", "zb-h1"})
      expect_same_training(record_training(with_pipeline(config, name, 4)), want, bits());
  }
}

TEST(Pipeline, OneRankRunsEverySchedule) {
  TrainConfig config = pipeline_config();
  const TrainingRecord want = reference(config);
  for (const char* name : {"gpipe", "zb-h1", "zb-v", "dualpipe-v"})
    expect_same_training(record_training(with_pipeline(config, name, 1)), want, bits());
}

TEST(Pipeline, PairwiseAccumulationIsTheSameTree) {
  TrainConfig config = pipeline_config();
  config.accumulation = Accumulation::kPairwise;
  const TrainingRecord want = reference(config);
  for (const std::string name : {"1f1b", "zb-h1", "zb-v", "dualpipe"}) {
    SCOPED_TRACE(name);
    Tolerance tolerance = bits();
    if (name == "dualpipe") tolerance.loss = 1e-15;  // a sum of each of its two models
    expect_same_training(record_training(with_pipeline(config, name, 2)), want, tolerance);
  }
  config.model.tie_embeddings = true;
  const TrainingRecord tied = reference(config);
  for (const char* name : {"1f1b", "zb-h1"})
    expect_same_training(record_training(with_pipeline(config, name, 2)), tied, kRounding);
}

TEST(Pipeline, ClippingSeesEachParameterOnce) {
  for (const bool tied : {false, true}) {
    TrainConfig config = pipeline_config();
    config.model.tie_embeddings = tied;
    config.clip_grad = 0.05;
    const TrainingRecord want = reference(config);
    for (const char* name : {"1f1b", "dualpipe"})
      expect_same_training(record_training(with_pipeline(config, name, 2)), want, kRounding);
  }
}

// What GPUs do: no receive is posted before the action that needs it.
TEST(Pipeline, RunsWithoutReceivesPostedAhead) {
  TrainConfig config = pipeline_config();
  const TrainingRecord want = reference(config);
  config.virtual_time = false;
  for (const char* name : {"gpipe", "1f1b", "zb-h1"})
    expect_same_training(record_training(with_pipeline(config, name, 4)), want, bits());
}

TEST(Pipeline, ValidationAndSamplesGoThroughThePipe) {
  TrainConfig config = pipeline_config();
  config.eval_interval = 2;
  config.eval_iters = 2;
  config.sample_tokens = 12;
  const TrainingRecord want = reference(config);
  ASSERT_EQ(want.validation.size(), 1u);
  for (const char* name : {"1f1b", "zb-v", "dualpipe"}) {
    const TrainingRecord got = record_training(with_pipeline(config, name, 2));
    EXPECT_NEAR(got.validation.at(0), want.validation.at(0), 1e-12 * want.validation.at(0)) << name;
    EXPECT_EQ(got.sample, want.sample) << name;
  }
}

// The most activations that any rank's run held at once, in the verifier's unit.
TEST(Pipeline, PeakActivationsAreTheVerifiers) {
  TrainConfig config = pipeline_config();
  config.model.num_layers = 8;
  config.train_iters = 1;
  for (const ScheduleKind& kind : schedule_kinds()) {
    SCOPED_TRACE(kind.name);
    const TrainingRecord got = record_training(with_pipeline(config, kind.name, 4));
    const ScheduleProof proof = verify_schedule(got.schedule);
    const double share = static_cast<double>(got.schedule.num_ranks()) / got.schedule.chain_length;
    ASSERT_EQ(got.traces.size(), 4u);
    for (size_t rank = 0; rank < 4; ++rank) {
      double most = 0;
      for (const Event& event : got.traces[rank].events) {
        if (got.traces[rank].names[event.name] == "activations held") most = std::max(most, event.value);
      }
      EXPECT_DOUBLE_EQ(most * share, proof.memory[rank].peak_activations) << "rank " << rank;
    }
  }
}

TrainConfig config_for_bytes(int64_t microbatches) {
  TrainConfig config = pipeline_config();
  config.model.num_layers = 8;
  config.train_iters = 1;
  config.global_batch_size = config.num_microbatches = microbatches;
  return config;
}
TrainingRecord run_for_bytes(const std::string& schedule, int64_t microbatches) {
  install_booking_allocator();
  return record_training(with_pipeline(config_for_bytes(microbatches), schedule, 4));
}
// A gradient sent to the stage before, in fp64.
double boundary_bytes() {
  const ModelConfig model = config_for_bytes(1).model;
  return static_cast<double>(model.seq_length * model.hidden_size) * 8;
}

// GPipe with every W at the very end: at its worst moment each microbatch holds what W needs, and the gradient that was
// sent to the stage before, from which no message comes any more that would tell that it has arrived.
std::string weights_last(int microbatches) {
  Schedule schedule{"weights-last", microbatches, {0, 1, 2, 3}, 4, std::vector<std::vector<Action>>(4)};
  for (int rank = 0; rank < 4; ++rank) {
    std::vector<Action>& actions = schedule.ranks[static_cast<size_t>(rank)];
    for (int i = 0; i < microbatches; ++i) actions.push_back(forward(rank, i));
    for (int i = 0; i < microbatches; ++i) actions.push_back(input_grad(rank, i));
    for (int i = 0; i < microbatches; ++i) actions.push_back(weight_grad(rank, i));
  }
  const std::string path = temporary_path("weights_last_" + std::to_string(microbatches) + ".csv");
  write_schedule(schedule, path, ScheduleDialect::kRanklab);
  return path;
}

// What one more microbatch adds to each rank's peak, and the peak with eight.
struct Growth {
  std::vector<double> of_eight, each;
};
Growth growth_of(const std::function<std::string(int)>& schedule) {
  const TrainingRecord eight = run_for_bytes(schedule(8), 8), sixteen = run_for_bytes(schedule(16), 16);
  Growth growth;
  for (int rank = 0; rank < 4; ++rank) {
    growth.of_eight.push_back(static_cast<double>(eight.peak_activation_bytes.at(rank)));
    growth.each.push_back((static_cast<double>(sixteen.peak_activation_bytes.at(rank)) - growth.of_eight.back()) / 8);
  }
  return growth;
}

// ... and so are the bytes: the verifier's peak times what a microbatch takes in GPipe, with what it takes between B
// and W (more than an activation: the layers' output gradients are kept, too) from a schedule that does every W last.
TEST(Pipeline, PeakActivationBytesAreTheVerifiers) {
  const Growth whole = growth_of([](int) { return "gpipe"; });
  const Growth awaiting = growth_of(weights_last);
  for (const char* name : {"1f1b", "zb-h1", "zb-h2"}) {
    const TrainingRecord got = run_for_bytes(name, 16);
    for (int rank = 0; rank < 4; ++rank) {
      const auto r = static_cast<size_t>(rank);
      const double ratio = awaiting.each[r] / whole.each[r];
      const double arrived = rank > 0 ? ratio - boundary_bytes() / whole.each[r] : ratio;
      // A GPU has no fused attention in fp64, and the plain one keeps more from F to B than W needs.
      EXPECT_GT(arrived, test_device() == TestDevice::kCuda ? 0.999 : 1) << "rank " << rank;
      const auto peak_with = [&](double held) { return verify_schedule(got.schedule, held).memory[r].peak_memory; };
      const double held =
          8 + (static_cast<double>(got.peak_activation_bytes.at(rank)) - whole.of_eight[r]) / whole.each[r];
      // The loss' temporaries on the last rank fall on the worst moment of GPipe and not on that of the others, by a
      // third of what a microbatch takes. A GPU's allocator gives whole 512 bytes.
      const double allowed = test_device() == TestDevice::kCuda ? 0.4 : rank == 3 ? 0.35 : 0.15;
      EXPECT_GT(held, peak_with(arrived) - allowed) << name << ", rank " << rank << ", ratio " << arrived;
      EXPECT_LT(held, peak_with(ratio) + allowed) << name << ", rank " << rank << ", ratio " << ratio;
    }
  }
}

}  // namespace
}  // namespace ranklab
